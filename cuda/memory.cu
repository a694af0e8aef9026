// The device's memory, as the kernel table offers it.
#include <algorithm>

#include "device.cuh"
#include "fit.cuh"
#include "log.h"
#include "ops.cuh"
#include "vec.cuh"

namespace {

float* take(size_t floats) {
  size_t bytes = (floats > 0 ? floats : 1) * sizeof(float);
  void* memory = nullptr;
  cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // forgotten: the next call did not fail
    fail("out of memory: the GPU could not give %s", show_bytes(double(bytes)).c_str());
  }
  CUDA_CHECK(error);
  set_zero(memory, bytes);
  return static_cast<float*>(memory);
}

// cudaFree waits for what is still running. At the end of a program the driver may be gone before the last block is.
void release(float* memory) {
  if (memory) cudaFree(memory);
}

double available() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  constexpr double kOperations = 320 << 20;  // for cuBLAS's workspace, staging and scratch memory
  return std::max(1.0, double(free) - kOperations);
}

void upload(void* to, const void* host, size_t bytes) {
  if (bytes == 0) return;
  CUDA_CHECK(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, stream()));
  wait();  // the host's memory is free again
}

void download(void* host, const void* from, size_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream()));
  wait();
}

constexpr int kThreads = 256, kEach = 8;  // elements a thread

template <class To, class From>
__global__ void convert_kernel(To* y, const From* x, int64_t n) {
  int64_t first = int64_t(blockIdx.x) * kThreads * kEach;
  int64_t end = min(n, first + kThreads * kEach);
  for (int64_t i = first + threadIdx.x; i < end; i += kThreads) y[i] = from_float<To>(to_float(x[i]));
}

template <class To, class From>
void convert(To* y, const From* x, int64_t n) {
  if (n > 0) launch(convert_kernel<To, From>, blocks_for(n, kThreads * kEach), kThreads, 0, stream(), y, x, n);
}

}  // namespace

template <class T>
void add_memory(Kernels& table) {
  table.take = take, table.release = release, table.available = available;
  table.upload = upload, table.download = download, table.wait = wait;
  table.from_floats = Fit<convert<T, float>>();
  table.to_floats = Fit<convert<float, T>>();
}
template void add_memory<float>(Kernels&);
template void add_memory<bf16>(Kernels&);
