// The one door to the GPU: every kernel is launched here and takes its shared memory here, so that the same .cu files are
// compiled by nvcc for a GPU and by g++ for the emulator (test/simt/), which stands in for the CUDA headers.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "error.h"

// A CUDA call that fails is our bug or the machine's: which call, and where.
inline void check_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) fail("%s:%d: %s: %s", file, line, call, cudaGetErrorString(error));
}
#define CUDA_CHECK(call) check_cuda(call, #call, __FILE__, __LINE__)

#ifdef __CUDACC__
using Grid = dim3;
inline dim3 extent(Grid grid) { return grid; }
template <class T>
using Shared = T;

// A block's shared memory, seen as one T, whose members are Shared<…>.
template <class T>
__device__ T& shared() {
  extern __shared__ __align__(128) unsigned char block_memory[];
  return *reinterpret_cast<T*>(block_memory);
}
#else
#include "simt.h"
using simt::Grid;
inline dim3 extent(const Grid& grid) { return grid.size; }
using simt::Shared;
using simt::shared;
#endif

// Each piece of work passes here, with all that tells it from others, before it goes into the stream. False: it shall not,
// since the graph that is being replayed holds it (graph.cu).
bool enters(const unsigned char* identity, size_t bytes);
template <class... Values>
bool enters(const Values&... values) {
  unsigned char identity[(sizeof(Values) + ... + 0)], *end = identity;
  auto append = [&](const auto& value) {
    if constexpr (std::is_empty_v<std::decay_t<decltype(value)>>) return;  // its one byte is nothing's
    std::memcpy(end, &value, sizeof value), end += sizeof value;
  };
  (append(values), ...);
  return enters(static_cast<const unsigned char*>(identity), size_t(end - identity));
}

// A block's most: so many have their registers on every GPU, whatever the kernel takes (255 a thread, 65,536 a block).
constexpr int kMostThreads = 256;

// Runs kernel(arguments…) on grid × block threads. A block takes `shared_bytes` of shared memory.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments... arguments) {
  check(block.x * block.y * block.z <= kMostThreads, "a block of %u × %u × %u threads", block.x, block.y, block.z);
  if (!enters(kernel, extent(grid), block, shared_bytes, Parameters(arguments)...)) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  if (shared_bytes > (48 << 10))  // more than a kernel gets without asking
    CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    int(shared_bytes)));
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Blocks for `count` pieces of work, of which each block takes `each`.
inline unsigned blocks_for(int64_t count, int64_t each) {
  int64_t blocks = ceil_div(count, each);
  check(blocks <= 0x7fffffff, "a grid of %lld blocks", (long long)blocks);
  return unsigned(blocks);
}
