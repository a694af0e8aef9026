// What tests may do to the emulated device, and what stand-ins for CUDA's libraries need of it.
#pragma once
#include <functional>

#include "cuda_runtime.h"

namespace simt {

void set_device_memory(size_t bytes);       // 8 GiB at first
void set_devices(int count);                // 1 at first; with none, calls return cudaErrorNoDevice
void set_driver_version(int version);       // 13000 at first; with less, calls return cudaErrorInsufficientDriver
void fail_next(cudaError_t, int skip = 0);  // of the runtime's calls from now on, after `skip` that work, one fails

// Work for the device, in the order of its stream.
struct Operation {
  const char* kind;  // "kernel", "copy", …
  std::function<void()> run;
};
// Puts it behind what is in the stream, or into the graph that the stream captures.
cudaError_t enqueue(cudaStream_t, Operation);

}  // namespace simt
