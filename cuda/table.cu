// The CUDA tables, and whether this machine can run them.
#include <string>

#include "devices.h"
#include "ops.cuh"
#include "vec.cuh"

static const cudaDeviceProp& properties() {
  static const cudaDeviceProp the_properties = [] {
    cudaDeviceProp p;
    CUDA_CHECK(cudaGetDeviceProperties(&p, 0));
    return p;
  }();
  return the_properties;
}

template <class T>
static Kernels make_table(const char* name) {
  Kernels table = {};
  table.name = name, table.device = properties().name;
  table.element_bytes = sizeof(T);
  add_graphs(table);
  add_peak(table);
  add_memory<T>(table);
  add_attention<T>(table);
  add_cross_entropy<T>(table);
  add_sampling<T>(table);
  add_matmul<T>(table);
  add_rmsnorm<T>(table);
  add_rows<T>(table);
  add_rotary<T>(table);
  add_swiglu<T>(table);
  add_head_gate<T>(table);
  add_feedback<T>(table);
  if constexpr (std::is_same_v<T, float>) add_optimizer(table);
  return table;
}

__global__ static void probe_kernel() {}

// One clear line where there is no device that can be used.
static std::string why_no_device() {
  int devices = 0;
  cudaError_t error = cudaGetDeviceCount(&devices);
  cudaGetLastError();  // forgotten: whoever asked decides
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
    auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
    if (driver == 0) return "this machine has no NVIDIA driver";
    return "this machine's driver is for CUDA " + version(driver) + " and this build needs " + version(runtime);
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && devices == 0)) return "this machine has no NVIDIA GPU";
  if (error != cudaSuccess) return cudaGetErrorString(error);
  const cudaDeviceProp& p = properties();
  if (p.major < 8)
    return "this machine's GPU, " + std::string(p.name) + ", is of compute capability " + std::to_string(p.major) +
           "." + std::to_string(p.minor) + ", and 8.0 is needed";
  cudaFuncAttributes attributes;
  error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(probe_kernel));
  cudaGetLastError();
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
    return "this build's kernels are not for this machine's GPU, " + std::string(p.name) + " (make clean && make)";
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return "";
}

const bool kHasCudaKernels = true;

const Kernels* cuda_kernels(bool bf16_elements, std::string* why_not) {
  *why_not = why_no_device();
  if (!why_not->empty()) return nullptr;
  static const Kernels* tables[2] = {};
  if (!tables[0]) {
    static Kernels floats = make_table<float>("cuda-fp32"), halves = make_table<bf16>("cuda-bf16");
    floats.floats = halves.floats = &floats;
    tables[0] = &floats, tables[1] = &halves;
  }
  return tables[bf16_elements];
}
