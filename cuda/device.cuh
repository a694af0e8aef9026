// What the operations share on the GPU, taken once: the stream on which all run in order, memory, and the way in for
// what lies on the host.
#pragma once
#include <cstddef>

#include "launch.cuh"

// All work of this process, in the order of its calls.
cudaStream_t stream();
void wait();  // until it is done

// Index arrays, segments and the like lie in host memory in every table (kernels.h); a kernel reads this copy, which is
// valid until the operation that asked for it has been launched.
const void* stage_bytes(const void* host, size_t bytes);
template <class T>
const T* stage(const T* host, int64_t count) {
  return host ? static_cast<const T*>(stage_bytes(host, size_t(count) * sizeof(T))) : nullptr;
}

void set_zero(void* memory, size_t bytes);

// Scratch memory for the operation being launched; its content is whatever the last one left. Grows to the largest
// request and stays.
void* scratch_bytes(size_t bytes);
template <class T>
T* scratch(int64_t count) {
  return static_cast<T*>(scratch_bytes(size_t(count) * sizeof(T)));
}
