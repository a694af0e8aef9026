#include "runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "buffers.h"
#include "report.h"
#include "streams.h"

namespace simt {
namespace {

constexpr int kVersion = 13000, kMultiprocessors = 4, kMajor = 9, kMinor = 0;
constexpr size_t kSharedBytes = 48 << 10, kMostSharedBytes = 227 << 10;

int devices = 1, driver_version = kVersion;
cudaError_t last_error = cudaSuccess, injected = cudaSuccess;
int calls_before_injected = 0;
std::map<const void*, size_t> shared_bytes_allowed;  // of kernels that asked for more than usual

cudaError_t check_device() {
  if (driver_version < kVersion) return cudaErrorInsufficientDriver;
  return devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t take_injected() {
  if (injected == cudaSuccess || calls_before_injected-- > 0) return cudaSuccess;
  return std::exchange(injected, cudaSuccess);
}

}  // namespace

void set_devices(int count) { devices = count; }
void set_driver_version(int version) { driver_version = version; }
void fail_next(cudaError_t error, int skip) { injected = error, calls_before_injected = skip; }

cudaError_t answer(const std::function<cudaError_t()>& call) {
  cudaError_t error = check_device();
  if (error == cudaSuccess) error = take_injected();
  if (error == cudaSuccess) error = call();
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t refuse(cudaError_t error, const char* call, const std::string& why) {
  std::fprintf(stderr, "simt: %s: %s\n", call, why.c_str());
  return error;
}

cudaError_t launch(const cudaLaunchConfig_t& c, const void* kernel, std::function<void()> thread) {
  return answer([&] {
    auto refuse_launch = [&](const std::string& why) {
      return refuse(cudaErrorInvalidConfiguration, ("launch at " + show(c.gridDim.where)).c_str(), why);
    };
    dim3 grid = c.gridDim.size, block = c.blockDim;
    uint64_t threads = uint64_t(block.x) * block.y * block.z;
    if (threads == 0 || threads > 1024 || block.z > 64) return refuse_launch("a block of " + show(block));
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 0xffff || grid.z > 0xffff)
      return refuse_launch("a grid of " + show(grid));
    auto allowed = shared_bytes_allowed.find(kernel);
    if (c.dynamicSmemBytes > (allowed == shared_bytes_allowed.end() ? kSharedBytes : allowed->second))
      return refuse_launch(form("%zu bytes of shared memory are more than the kernel may have", c.dynamicSmemBytes));
    return enqueue(c.stream, {"kernel", [kernel, grid = c.gridDim, block, bytes = c.dynamicSmemBytes, thread] {
                                run(kernel, grid, block, bytes, Body(thread));
                              }});
  });
}

}  // namespace simt

using namespace simt;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return answer([&] { return *attributes = {0, 255, 256}, cudaSuccess; });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return answer([&] {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || size_t(value) > kMostSharedBytes)
      return refuse(cudaErrorInvalidValue, "cudaFuncSetAttribute", form("%d bytes of shared memory", value));
    shared_bytes_allowed[kernel] = std::max(kSharedBytes, size_t(value));
    return cudaSuccess;
  });
}

// --- Errors

namespace {
struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "the capture was not initiated in this stream"},
    {cudaErrorGraphExecUpdateFailure, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to "
     "instantiated "
     "graph update"},
};
const ErrorText& text_of(cudaError_t error) {
  static constexpr ErrorText kUnknown = {cudaSuccess, "unrecognized error code", "unrecognized error code"};
  auto found =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorText& e) { return e.error == error; });
  return found == std::end(kErrors) ? kUnknown : *found;
}
}  // namespace

const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

// --- Devices

static cudaError_t check_ordinal(int device) {
  return device >= 0 && device < devices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return answer([&] { return *count = devices, cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return answer([&] { return check_ordinal(device); });
}
cudaError_t cudaGetDevice(int* device) {
  return answer([&] { return *device = 0, cudaSuccess; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return answer([&] {
    *properties = {};
    std::strcpy(properties->name, "Emulated GPU");
    properties->totalGlobalMem = device_bytes();
    properties->sharedMemPerBlock = kSharedBytes;
    properties->sharedMemPerBlockOptin = kMostSharedBytes;
    properties->major = kMajor, properties->minor = kMinor;
    properties->multiProcessorCount = kMultiprocessors;
    properties->warpSize = warpSize;
    properties->maxThreadsPerBlock = 1024;
    return check_ordinal(device);
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return answer([&] {
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = kMultiprocessors;
        break;
      case cudaDevAttrComputeCapabilityMajor:
        *value = kMajor;
        break;
      case cudaDevAttrComputeCapabilityMinor:
        *value = kMinor;
        break;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = int(kMostSharedBytes);
        break;
      default:
        return cudaErrorInvalidValue;
    }
    return check_ordinal(device);
  });
}
// These two work without a device.
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = kVersion, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = devices ? driver_version : 0, cudaSuccess; }
