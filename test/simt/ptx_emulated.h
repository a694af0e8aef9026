// The instructions of cuda/ptx.cuh for the emulator. What each does is said there.
//
// Asynchronous copies land at the wait; until then their destination counts as unwritten. Loads of matrices and
// products are collectives of the whole warp: the lanes' fragments are put together into matrices, and the result is
// cut into fragments again, so that a kernel with a wrong mapping of lanes gets a wrong result. Products of two
// elements are exact in float; they are added in increasing index, each time rounded to float (the hardware adds them
// in an order of its own).
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "simt.h"

namespace simt {

// Where the parts of a fragment lie. A 16-bit register holds two elements, side by side along `k`.
struct Position {
  int row, column;
};
constexpr int group_of(int lane) { return lane / 4; }
constexpr int member_of(int lane) { return lane % 4; }
constexpr Position of_a16(int lane, int part) {  // two parts a register
  return {group_of(lane) + part / 2 % 2 * 8, 2 * member_of(lane) + part % 2 + part / 4 * 8};
}
constexpr Position of_b16(int lane, int part) {
  return {2 * member_of(lane) + part % 2 + part / 2 * 8, group_of(lane)};
}
constexpr Position of_a32(int lane, int part) {
  return {group_of(lane) + part % 2 * 8, member_of(lane) + part / 2 * 4};
}
constexpr Position of_b32(int lane, int part) { return {member_of(lane) + part * 4, group_of(lane)}; }
constexpr Position of_c(int lane, int part) { return {group_of(lane) + part / 2 * 8, 2 * member_of(lane) + part % 2}; }

// What the elements of a fragment's registers are worth.
struct Bf16Parts {
  static constexpr int depth = 16;
  static constexpr auto a_at = of_a16, b_at = of_b16;
  static float value(const uint32_t* r, int part) { return std::bit_cast<float>(r[part / 2] >> part % 2 * 16 << 16); }
};
struct HalfParts {
  static constexpr int depth = 16;
  static constexpr auto a_at = of_a16, b_at = of_b16;
  static float value(const uint32_t* r, int part) {
    return __half2float(__ushort_as_half(uint16_t(r[part / 2] >> part % 2 * 16)));
  }
};
struct Tf32Parts {
  static constexpr int depth = 8;
  static constexpr auto a_at = of_a32, b_at = of_b32;
  static float value(const uint32_t* r, int part) { return std::bit_cast<float>(r[part] & ~0x1fffu); }
};

struct Factors {
  uint32_t a[4], b[2];
  float c[4];
};

template <class Parts>
void multiply_warp(const Lane* lanes, unsigned) {
  constexpr int depth = Parts::depth;
  float a[16][depth], b[depth][8], c[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    auto& mine = *static_cast<const Factors*>(lanes[lane].given);
    for (int part = 0; part < depth / 2; ++part) {
      Position at = Parts::a_at(lane, part);
      a[at.row][at.column] = Parts::value(mine.a, part);
    }
    for (int part = 0; part < depth / 4; ++part) {
      Position at = Parts::b_at(lane, part);
      b[at.row][at.column] = Parts::value(mine.b, part);
    }
    for (int part = 0; part < 4; ++part) c[of_c(lane, part).row][of_c(lane, part).column] = mine.c[part];
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < depth; ++k)
      for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 32; ++lane)
    for (int part = 0; part < 4; ++part)
      static_cast<float*>(lanes[lane].got)[part] = c[of_c(lane, part).row][of_c(lane, part).column];
}

template <class Parts>
void multiply(const char* call, float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Place where) {
  Factors mine;
  std::memcpy(mine.a, a, sizeof a);
  std::memcpy(mine.b, b, sizeof b);
  std::memcpy(mine.c, c, sizeof c);
  meet_warp(call, ~0u, {&mine, c, 0}, multiply_warp<Parts>, where);
}

// Hands out four matrices whose rows the lanes have brought.
template <bool transposed>
void hand_out_matrices(const Lane* lanes, unsigned) {
  for (int lane = 0; lane < 32; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix) {
      uint32_t pair = 0;
      for (int i = 0; i < 2; ++i) {
        int row = group_of(lane), column = 2 * member_of(lane) + i;
        if (transposed) std::swap(row, column);
        pair |= uint32_t(static_cast<const uint16_t*>(lanes[8 * matrix + row].given)[column]) << 16 * i;
      }
      static_cast<uint32_t*>(lanes[lane].got)[matrix] = pair;
    }
}

template <bool transposed, class T>
[[gnu::always_inline]] inline void load_matrix_rows(const char* call, uint32_t (&r)[4], const Shared<T>* row,
                                                    Place where) {
  static_assert(sizeof(T) == 2);
  note_vector(row, 16);
  note_read(row, 16);
  uint16_t mine[8];
  std::memcpy(mine, static_cast<const void*>(row), 16);
  meet_warp(call, ~0u, {mine, r, 0}, hand_out_matrices<transposed>, where);
}

}  // namespace simt

template <class T>
[[gnu::always_inline]] inline void copy_async16(simt::Shared<T>* to, const T* from, bool holds = true,
                                                simt::Place where = simt::Place::current()) {
  simt::begin_copy(to, holds ? from : nullptr, where);
}
inline void copy_async_commit() { simt::commit_copies(); }
template <int pending>
void copy_async_wait() {
  simt::land_copies(pending);
}

template <class T>
[[gnu::always_inline]] inline void ldmatrix_x4(uint32_t (&r)[4], const simt::Shared<T>* row,
                                               simt::Place where = simt::Place::current()) {
  simt::load_matrix_rows<false>("ldmatrix_x4", r, row, where);
}
template <class T>
[[gnu::always_inline]] inline void ldmatrix_x4_transposed(uint32_t (&r)[4], const simt::Shared<T>* row,
                                                          simt::Place where = simt::Place::current()) {
  simt::load_matrix_rows<true>("ldmatrix_x4_transposed", r, row, where);
}

template <class T>
void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                  simt::Place where = simt::Place::current()) {
  using Parts = std::conditional_t<std::is_same_v<T, __half>, simt::HalfParts, simt::Bf16Parts>;
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  simt::multiply<Parts>("mma_m16n8k16", c, a, b, where);
}
inline void mma_m16n8k8_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                             simt::Place where = simt::Place::current()) {
  simt::multiply<simt::Tf32Parts>("mma_m16n8k8_tf32", c, a, b, where);
}
inline uint32_t to_tf32(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}
