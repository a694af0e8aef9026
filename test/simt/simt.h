// The emulator: runs a CUDA kernel's threads as fibers on the CPU.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

using std::max;
using std::min;

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

namespace simt {

// A grid, and where it was launched.
struct Grid {
  dim3 size;
  std::source_location where;
  Grid(dim3 size = {}, std::source_location where = std::source_location::current()) : size(size), where(where) {}
  Grid(unsigned x, std::source_location where = std::source_location::current()) : size(x), where(where) {}
};

void run(const Grid& grid, dim3 block, size_t shared_bytes, std::function<void()> thread);
void* block_memory();

template <class T>
T& shared() {
  return *static_cast<T*>(block_memory());
}
template <class T>
class Shared {
 public:
  operator T() const { return value_; }
  Shared& operator=(T x) { return value_ = x, *this; }
  Shared& operator=(const Shared& x) { return *this = T(x); }

 private:
  T value_;
};

void meet_block(std::source_location where);
// This lane's value to all lanes of `mask`, which meet here; the value of `lane` comes back.
void exchange(void* got, const void* given, size_t bytes, unsigned mask, int lane, std::source_location where);
int lane();

}  // namespace simt

inline void __syncthreads(std::source_location where = std::source_location::current()) { simt::meet_block(where); }
template <class T>
T __shfl_sync(unsigned mask, T x, int lane, int = 32, std::source_location where = std::source_location::current()) {
  T got;
  simt::exchange(&got, &x, sizeof x, mask, lane, where);
  return got;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int bits, int = 32,
                  std::source_location where = std::source_location::current()) {
  return __shfl_sync(mask, x, simt::lane() ^ bits, 32, where);
}
inline void __syncwarp(unsigned mask = ~0u, std::source_location where = std::source_location::current()) {
  __shfl_sync(mask, 0, simt::lane(), 32, where);
}
