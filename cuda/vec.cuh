// Sixteen bytes of T in registers, what one thread moves in one instruction; and rows of any width as such pieces, with
// single elements before and behind.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "launch.cuh"

using bf16 = __nv_bfloat16;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
// To nearest, ties to even.
template <class T>
__device__ T from_float(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return __float2bfloat16(x);
}

template <class T, int N>
struct alignas(N * sizeof(T)) Vec {
  T element[N];
  __device__ float operator[](int i) const { return to_float(element[i]); }
  __device__ void set(int i, float x) { element[i] = from_float<T>(x); }
};
template <class T>
constexpr int kVec = 16 / int(sizeof(T));

// N elements at p, in one access; p is aligned to as many bytes.
template <int N, class T>
__device__ Vec<T, N> load(const T* p) {
  return *reinterpret_cast<const Vec<T, N>*>(p);
}
template <class T, int N>
__device__ void store(T* p, const Vec<T, N>& v) {
  *reinterpret_cast<Vec<T, N>*>(p) = v;
}

// A number that the compiler knows.
template <int N>
struct Count {
  __host__ __device__ constexpr operator int() const { return N; }
};

// Shares the `width` elements at p among `lanes` threads, of which this is `lane`: calls f(i, n) with n = kVec<T>, a
// constant, where p + i is aligned to 16 bytes, and with n = 1 before the first such place and behind the last. Each
// thread sees its own i increase, and the same ones in every call of the same shape and alignment.
template <class T, class F>
__device__ void each_piece(const T* p, int64_t width, int lane, int lanes, F f) {
  constexpr int N = kVec<T>;
  int64_t before = int64_t(-(reinterpret_cast<uintptr_t>(p) / sizeof(T)) % N);
  if (before > width) before = width;
  int64_t whole = before + (width - before) / N * N;
  for (int64_t i = lane; i < before; i += lanes) f(i, Count<1>());
  for (int64_t i = before + int64_t(lane) * N; i < whole; i += int64_t(lanes) * N) f(i, Count<N>());
  for (int64_t i = whole + lane; i < width; i += lanes) f(i, Count<1>());
}
