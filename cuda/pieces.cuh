// How the operations bound by memory share rows and elements: among blocks by stretches of a row, among a block's
// threads by pieces of 16 bytes, which all arrays that are walked together must allow; and heads, among groups of
// lanes.
#pragma once
#include "reduce.cuh"
#include "stretch.h"
#include "vec.cuh"

// Whether p and the others begin equally far from a boundary of kVec<T> elements: then each_piece over p has pieces of
// all of them. With p + width among the others, also in every other row.
template <class T, class... Others>
__device__ bool together(const T* p, const Others*... others) {
  auto beyond_boundary = [](auto* q) { return int(reinterpret_cast<uintptr_t>(q) / sizeof(*q) % kVec<T>); };
  return ((beyond_boundary(others) == beyond_boundary(p)) && ...);
}

// each_piece where `whole`, else single elements, shared as if p were aligned nowhere.
template <class T, class F>
__device__ void each_piece_if(bool whole, const T* p, int64_t width, int lane, int lanes, F f) {
  if (whole) return each_piece(p, width, lane, lanes, f);
  for (int64_t i = lane; i < width; i += lanes) f(i, Count<1>());
}

// --- Stretches (stretch.h) that make a piece for each of a block's threads

constexpr int kStretchThreads = 128;
template <class T>
constexpr int kStretch = kStretchThreads* kVec<T>;

template <class T>
unsigned count_stretches(int64_t rows, int64_t width) {
  return blocks_for(rows * stretches_in(width, kStretch<T>), 1);
}
template <class T>
__device__ Stretch stretch_of_block(int64_t width) {
  return stretch_of(blockIdx.x, width, kStretch<T>);
}

// f(i, n) for this thread's pieces of the stretch; p is the beginning of the stretch's row, and i counts from there.
template <class T, class F>
__device__ void each_piece_of(Stretch s, bool whole, const T* p, F f) {
  each_piece_if(whole, p + s.first, s.count, int(threadIdx.x), kStretchThreads,
                [&](int64_t i, auto n) { f(s.first + i, n); });
}

// --- Groups of lanes: a power of two of them, at most a warp, takes a head; so a warp takes several short ones at
// once.

inline int lanes_for(int64_t pieces) {
  int lanes = 1;
  while (lanes < pieces && lanes < kWarp) lanes *= 2;
  return lanes;
}

// Every lane gets the sum over its group, in one order. Whole warps only.
__device__ inline float group_sum(float x, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}

__device__ inline float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }
