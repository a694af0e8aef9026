// Barriers and warp collectives. Lanes of a warp meet when they name the same mask at the same place in the source;
// what each brings is then combined and handed out at once.
#pragma once
#include <cstdint>
#include <cstring>

#include "simt.h"

namespace simt {

void meet_block(Place where);

// What a lane brings to a meeting and where it wants its result.
struct Lane {
  const void* given;
  void* got;
  int from;  // of a shuffle: whose value
};
// Called once, when all are there: writes every lane's result. `lanes` has 32 entries; those in the mask are set. Null:
// a barrier, which exchanges nothing and orders memory; the others do not.
using Combine = void (*)(const Lane* lanes, unsigned mask);
void meet_warp(const char* call, unsigned mask, Lane, Combine, Place where);
int lane();  // of the calling thread in its warp

// The lane `from` that lane `reader` wants to read has to take part.
void check_source(unsigned mask, int reader, int from);

template <class F>
void each_lane(unsigned mask, F f) {
  for (; mask; mask &= mask - 1) f(__builtin_ctz(mask));
}

template <class T>
T shuffle(const char* call, unsigned mask, T x, int from, Place where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  T got;
  auto hand_out = [](const Lane* lanes, unsigned mask) {
    each_lane(mask, [&](int i) {
      check_source(mask, i, lanes[i].from);
      std::memcpy(lanes[i].got, lanes[lanes[i].from].given, sizeof(T));
    });
  };
  meet_warp(call, mask, {&x, &got, from}, hand_out, where);
  return got;
}

// Every lane of the mask gets combine(…combine(first, second)…, last).
template <class Result, class T, class F>
Result reduce(const char* call, unsigned mask, T x, F, Place where) {
  Result got;
  auto hand_out = [](const Lane* lanes, unsigned mask) {
    Result total = {};
    bool first = true;
    each_lane(mask, [&](int i) {
      T x = *static_cast<const T*>(lanes[i].given);
      total = F()(first, total, x, i);
      first = false;
    });
    each_lane(mask, [&](int i) { *static_cast<Result*>(lanes[i].got) = total; });
  };
  meet_warp(call, mask, {&x, &got, 0}, hand_out, where);
  return got;
}

}  // namespace simt

inline void __syncthreads(simt::Place where = simt::Place::current()) { simt::meet_block(where); }

inline void __syncwarp(unsigned mask = ~0u, simt::Place where = simt::Place::current()) {
  simt::meet_warp("__syncwarp", mask, {}, nullptr, where);
}

// Shuffles within segments of `width` lanes, a power of two. A lane whose source lies outside of its segment keeps its
// own.
template <class T>
T __shfl_sync(unsigned mask, T x, int from, int width = 32, simt::Place where = simt::Place::current()) {
  int segment = simt::lane() & -width;
  return simt::shuffle("__shfl_sync", mask, x, segment + (from & (width - 1)), where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned delta, int width = 32, simt::Place where = simt::Place::current()) {
  int me = simt::lane(), from = me - int(delta);
  return simt::shuffle("__shfl_up_sync", mask, x, from < (me & -width) ? me : from, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned delta, int width = 32, simt::Place where = simt::Place::current()) {
  int me = simt::lane(), from = me + int(delta), end = (me & -width) + width;
  return simt::shuffle("__shfl_down_sync", mask, x, from >= end ? me : from, where);
}
// This one may read from the segments before its own.
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32, simt::Place where = simt::Place::current()) {
  int me = simt::lane(), from = me ^ bits, end = (me & -width) + width;
  return simt::shuffle("__shfl_xor_sync", mask, x, from >= end ? me : from, where);
}

inline unsigned __ballot_sync(unsigned mask, int holds, simt::Place where = simt::Place::current()) {
  auto vote = [](bool, unsigned votes, int x, int lane) { return votes | unsigned(x != 0) << lane; };
  return simt::reduce<unsigned>("__ballot_sync", mask, holds, vote, where);
}
inline int __any_sync(unsigned mask, int holds, simt::Place where = simt::Place::current()) {
  auto any = [](bool, int all, int x, int) { return int(all || x); };
  return simt::reduce<int>("__any_sync", mask, holds, any, where);
}
inline int __all_sync(unsigned mask, int holds, simt::Place where = simt::Place::current()) {
  auto all = [](bool first, int all, int x, int) { return int((first || all) && x); };
  return simt::reduce<int>("__all_sync", mask, holds, all, where);
}

// Of unsigned or int.
template <class T>
T __reduce_add_sync(unsigned mask, T x, simt::Place where = simt::Place::current()) {
  auto add = [](bool, T sum, T x, int) { return T(unsigned(sum) + unsigned(x)); };
  return simt::reduce<T>("__reduce_add_sync", mask, x, add, where);
}
template <class T>
T __reduce_min_sync(unsigned mask, T x, simt::Place where = simt::Place::current()) {
  auto least = [](bool first, T so_far, T x, int) { return first || x < so_far ? x : so_far; };
  return simt::reduce<T>("__reduce_min_sync", mask, x, least, where);
}
template <class T>
T __reduce_max_sync(unsigned mask, T x, simt::Place where = simt::Place::current()) {
  auto most = [](bool first, T so_far, T x, int) { return first || x > so_far ? x : so_far; };
  return simt::reduce<T>("__reduce_max_sync", mask, x, most, where);
}
