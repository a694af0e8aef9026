// The runtime's memory: buffers, copies and fills.
#include <cstring>
#include <vector>

#include "buffers.h"
#include "report.h"
#include "streams.h"

using namespace simt;

namespace {

cudaError_t take(void** p, size_t bytes, Kind kind, const char* call) {
  *p = nullptr;
  if (cudaError_t error = forbid_capture(call)) return error;
  if (bytes == 0) return cudaSuccess;
  *p = allocate(bytes, kind);
  if (!*p) {  // there may be some that has been freed and not yet given back
    drain_all();
    *p = allocate(bytes, kind);
  }
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t give_back(void* p, Kind kind, const char* call) {
  if (!p) return cudaSuccess;
  if (cudaError_t error = forbid_capture(call)) return error;
  drain_all();
  if (release(p, kind)) return cudaSuccess;
  return refuse(cudaErrorInvalidValue, call, form("%p was not allocated: it is ", p) + describe_address(p));
}

// The side of a transfer that `on_device` says it is: a range of a device buffer, or memory of the host's.
cudaError_t check_side(const char* call, const void* p, size_t bytes, bool on_device) {
  bool there = where_is(p) == Where::device;
  if (there != on_device)
    return refuse(cudaErrorInvalidValue, call,
                  form("%p is%s the device's: it is ", p, on_device ? " not" : "") + describe_address(p));
  if (where_is(p) != Where::nowhere && !inside_buffer(p, bytes))
    return refuse(cudaErrorInvalidValue, call, form("%zu bytes do not fit ", bytes) + describe_address(p));
  return cudaSuccess;
}

cudaError_t check_sides(const char* call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  bool to_device = where_is(to) == Where::device, from_device = where_is(from) == Where::device;
  if (kind != cudaMemcpyDefault) {
    to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  }
  cudaError_t error = check_side(call, to, bytes, to_device);
  return error ? error : check_side(call, from, bytes, from_device);
}

// Pageable memory is the host's again when the call returns; pinned memory only when the copy is done. A capture copies
// nothing yet.
cudaError_t copy(const char* call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (cudaError_t error = check_sides(call, to, from, bytes, kind)) return error;
  CUstream_st* s = find_stream(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  bool capturing = s->capture != cudaStreamCaptureStatusNone;
  if (!capturing && where_is(from) == Where::nowhere) {
    auto begin = static_cast<const char*>(from);
    std::vector<char> now(begin, begin + bytes);
    cudaError_t error = enqueue(stream, {"copy", [=, now = std::move(now)] { std::memcpy(to, now.data(), bytes); }});
    if (where_is(to) == Where::nowhere) drain(*s);
    return error;
  }
  cudaError_t error = enqueue(stream, {"copy", [=] { std::memmove(to, from, bytes); }});
  if (!capturing && where_is(to) == Where::nowhere) drain(*s);
  return error;
}

cudaError_t set(const char* call, void* to, int byte, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (cudaError_t error = check_side(call, to, bytes, true)) return error;
  return enqueue(stream, {"set", [=] { std::memset(to, byte, bytes); }});
}

}  // namespace

cudaError_t cudaMalloc(void** p, size_t bytes) {
  return answer([&] { return take(p, bytes, Kind::device, "cudaMalloc"); });
}
cudaError_t cudaMallocHost(void** p, size_t bytes) {
  return answer([&] { return take(p, bytes, Kind::pinned, "cudaMallocHost"); });
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) {
  return answer([&] { return take(p, bytes, Kind::device, "cudaMallocAsync"); });
}
cudaError_t cudaFree(void* p) {
  return answer([&] { return give_back(p, Kind::device, "cudaFree"); });
}
cudaError_t cudaFreeHost(void* p) {
  return answer([&] { return give_back(p, Kind::pinned, "cudaFreeHost"); });
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return answer([&] {
    if (cudaError_t error = forbid_capture("cudaFreeAsync")) return error;
    if (cudaError_t error = check_side("cudaFreeAsync", p, 1, true)) return error;
    return enqueue(stream, {"free", [=] {
                              if (!release(p, Kind::device))
                                die(form("cudaFreeAsync: %p is no buffer", p), std::string());
                            }});
  });
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return answer([&] {
    *total = device_bytes();
    *free = *total - device_bytes_used();
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return answer([&] { return copy("cudaMemcpyAsync", to, from, bytes, kind, stream); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return answer([&] {
    if (cudaError_t error = forbid_capture("cudaMemcpy")) return error;
    cudaError_t error = copy("cudaMemcpy", to, from, bytes, kind, nullptr);
    drain(*find_stream(nullptr));
    return error;
  });
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  return answer([&] { return set("cudaMemsetAsync", to, byte, bytes, stream); });
}
cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  return answer([&] {
    if (cudaError_t error = forbid_capture("cudaMemset")) return error;
    return set("cudaMemset", to, byte, bytes, nullptr);
  });
}
