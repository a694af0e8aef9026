// Sixteen floats that behave the same on every instruction set: one AVX-512 register, two of AVX2, four of SSE2 or
// NEON. This and tile.h are the only files that know which; kernels are written once, in Lanes, and their bits never
// differ.
//
// Every kernel file is compiled once for each instruction set (ISA is its name) into a namespace of that name, so that
// an inline function compiled for one never serves another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels.h"
#include "parallel.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace ISA {

#if defined(__AVX512F__)
constexpr int kWidth = 16;  // floats in a register
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kWidth * sizeof(int32_t))));

inline Ints lane_numbers() {
  Ints n;
  for (int l = 0; l < kWidth; ++l) n[l] = l;
  return n;
}
inline Vector splat_vector(float x) { return x - Vector{}; }  // x − 0 is x, also for −0

#if !defined(__AVX2__) && !defined(__ARM_NEON)
// fma without the instruction. In double the product is exact; the sum's rounding error is recovered (TwoSum) and
// folded into the last bit ("round to odd"), so that rounding once more to float is the one rounding of the exact value
// (Boldo & Melquiond 2008).
inline Vector fma(Vector a, Vector b, Vector c) {
  typedef double Doubles __attribute__((vector_size(kWidth * sizeof(double))));
  typedef int64_t Longs __attribute__((vector_size(kWidth * sizeof(int64_t))));
  Doubles product = __builtin_convertvector(a, Doubles) * __builtin_convertvector(b, Doubles);
  Doubles addend = __builtin_convertvector(c, Doubles), sum = product + addend, back = sum - product;
  Doubles error = (product - (sum - back)) + (addend - back);
  Longs bits = (Longs)sum, inexact = (error > 0) | (error < 0), even = (bits & 1) - 1;
  Longs outward = (error > 0) == (sum > 0);                     // away from zero: the next larger bit pattern
  bits += (inexact & even) & ((outward & 1) - (~outward & 1));  // NaN and infinity have no error > 0 or < 0
  return __builtin_convertvector((Doubles)bits, Vector);
}
#else
inline Vector fma(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return (Vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
}
#endif

// kWidth numbers in bfloat16, the upper half of a float: their values are exact in float.
inline Vector load_bf16(const uint16_t* p) {
#if defined(__AVX512F__)  // with a full mask, as in sqrt below
  __m512i words = _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256((const __m256i*)p));
  return (Vector)_mm512_maskz_slli_epi32(0xffff, words, 16);
#elif defined(__AVX2__)
  return (Vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
#else
  typedef uint16_t Halves __attribute__((vector_size(kWidth * sizeof(uint16_t))));
  typedef uint32_t Words __attribute__((vector_size(kWidth * sizeof(uint32_t))));
  Halves halves;
  std::memcpy(&halves, p, sizeof halves);
  return (Vector)(__builtin_convertvector(halves, Words) << 16);
#endif
}

// One fma of single floats, by the same means.
inline float fma(float a, float b, float c) {
#if defined(__AVX2__) || defined(__ARM_NEON)
  return __builtin_fmaf(a, b, c);
#else
  return fma(splat_vector(a), splat_vector(b), splat_vector(c))[0];
#endif
}

constexpr int kLanes = 16;
constexpr int kParts = kLanes / kWidth;
struct Lanes {
  Vector part[kParts];
};

// Applies an operation on registers to each part.
template <class F>
inline Lanes each_part(F f) {
  Lanes y;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) y.part[i] = f(i);
  return y;
}

inline Lanes splat(float x) {
  return each_part([&](int) { return splat_vector(x); });
}
inline Lanes operator+(Lanes a, Lanes b) {
  return each_part([&](int i) { return a.part[i] + b.part[i]; });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return each_part([&](int i) { return a.part[i] - b.part[i]; });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return each_part([&](int i) { return a.part[i] * b.part[i]; });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return each_part([&](int i) { return a.part[i] / b.part[i]; });
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return each_part([&](int i) { return fma(a.part[i], b.part[i], c.part[i]); });
}
inline Lanes negative(Lanes a) {
  return each_part([&](int i) { return -a.part[i]; });
}
inline Lanes max(Lanes a, Lanes b) {
  return each_part([&](int i) { return a.part[i] > b.part[i] ? a.part[i] : b.part[i]; });
}
inline Vector sqrt(Vector x) {
#if defined(__AVX512F__)
  return (Vector)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);  // the form without a mask draws a false warning from g++ 12
#elif defined(__AVX2__)
  return (Vector)_mm256_sqrt_ps((__m256)x);
#else
  for (int i = 0; i < kWidth; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
inline Lanes sqrt(Lanes a) {
  return each_part([&](int i) { return sqrt(a.part[i]); });
}

inline Lanes load(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Lanes v) { std::memcpy(p, &v, sizeof v); }

// The first n ≤ 16 floats at p, and `rest` behind them; and back.
inline Lanes load(const float* p, int n, float rest = 0) {
  if (n == kLanes) return load(p);
#if defined(__AVX512F__)
  return {(Vector)_mm512_mask_loadu_ps(_mm512_set1_ps(rest), (__mmask16)((1u << n) - 1), p)};
#else
  Lanes v = splat(rest);
  for (int i = 0; i < kParts && i * kWidth < n; ++i) {
    if (n - i * kWidth >= kWidth)
      std::memcpy(&v.part[i], p + i * kWidth, sizeof(Vector));
    else
      for (int l = 0; l < n - i * kWidth; ++l) v.part[i][l] = p[i * kWidth + l];
  }
  return v;
#endif
}
inline void store(float* p, Lanes v, int n) {
  if (n == kLanes) return store(p, v);
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v.part[0]);
#else
  for (int i = 0; i < kParts && i * kWidth < n; ++i) {
    if (n - i * kWidth >= kWidth)
      std::memcpy(p + i * kWidth, &v.part[i], sizeof(Vector));
    else
      for (int l = 0; l < n - i * kWidth; ++l) p[i * kWidth + l] = v.part[i][l];
  }
#endif
}

// The lanes meet in one fixed tree: 16 → 8 → 4 → 2 → 1.
inline float sum(Lanes v) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  Eight eight[2];
  std::memcpy(eight, &v, sizeof v);
  Eight e = eight[0] + eight[1];
  Four four[2];
  std::memcpy(four, &e, sizeof e);
  Four f = four[0] + four[1];
  return (f[0] + f[2]) + (f[1] + f[3]);
}
inline float greatest(Lanes v) {
  float all[kLanes], m;
  store(all, v);
  m = all[0];
  for (int i = 1; i < kLanes; ++i) m = m > all[i] ? m : all[i];
  return m;
}

// Calls f(i, n) for each piece [i, i + n) of a row: full pieces of 16, then the rest. Term i so always meets lane i
// % 16.
template <class F>
inline void each_piece(int width, F f) {
  int i = 0;
  for (; i + kLanes <= width; i += kLanes) f(i, kLanes);
  if (i < width) f(i, width - i);
}

// Calls f(begin, end) for the blocks of kSummedRows rows that a sum over rows is made of (kernels.h).
template <class F>
inline void each_block_of_rows(int rows, F f) {
  for (int begin = 0; begin < rows; begin += kSummedRows)
    f(begin, rows - begin < kSummedRows ? rows : begin + kSummedRows);
}

// Calls f(i, n) for the pieces of a long array, shared by the threads; for work where every element stands alone.
template <class F>
inline void each_piece_in_parallel(int64_t count, F f) {
  constexpr int64_t kBlock = 4096;  // elements a task
  int64_t blocks = (count + kBlock - 1) / kBlock;
  parallel_for(blocks, blocks > 2, [&](int64_t block) {
    int64_t end = (block + 1) * kBlock < count ? (block + 1) * kBlock : count, i = block * kBlock;
    for (; i + kLanes <= end; i += kLanes) f(i, kLanes);
    if (i < end) f(i, int(end - i));
  });
}

}  // namespace ISA
