// Sums and maxima over a warp or a block, always in one order, so that a run gives the same bits every time.
#pragma once
#include "launch.cuh"

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = ~0u;

// Every lane gets the result over all 32, combined in one order. Whole warps only.
template <class T, class F>
__device__ T warp_reduce(T x, F combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}
template <class T>
__device__ T warp_sum(T x) {
  return warp_reduce(x, [](T a, T b) { return a + b; });
}
template <class T>
__device__ T warp_max(T x) {
  return warp_reduce(x, [](T a, T b) { return a > b ? a : b; });
}

// Every thread gets the result over the block's, whose size is a multiple of 32 (at most 1024) and which all call it.
// `scratch` has 32 entries; it may be used again after the next barrier.
template <class T, class F>
__device__ T block_reduce(T x, Shared<T>* scratch, F combine) {
  int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  x = warp_reduce(x, combine);
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  T total = scratch[0];
  for (int w = 1; w < warps; ++w) total = combine(total, T(scratch[w]));
  return total;
}
template <class T>
__device__ T block_sum(T x, Shared<T>* scratch) {
  return block_reduce(x, scratch, [](T a, T b) { return a + b; });
}
template <class T>
__device__ T block_max(T x, Shared<T>* scratch) {
  return block_reduce(x, scratch, [](T a, T b) { return a > b ? a : b; });
}
