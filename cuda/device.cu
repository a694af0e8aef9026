#include "device.cuh"

#include <cstring>
#include <vector>

#include "log.h"

cudaStream_t stream() {
  static cudaStream_t the_stream = [] {
    cudaStream_t s;
    CUDA_CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
  }();
  return the_stream;
}

namespace {

// Pinned host memory and its place on the device, filled from the front; when it is full everything is waited for. Much
// larger than what one operation asks for.
struct Staging {
  static constexpr size_t kBytes = 16 << 20, kAlignment = 256;
  char *host = nullptr, *device = nullptr;
  size_t bytes = 0, used = 0;

  void grow(size_t wanted) {
    CUDA_CHECK(cudaStreamSynchronize(stream()));
    used = 0;
    if (wanted <= bytes) return;
    if (host) {
      CUDA_CHECK(cudaFreeHost(host));
      CUDA_CHECK(cudaFree(device));
    }
    bytes = wanted;
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&host), bytes));
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&device), bytes));
  }
};

}  // namespace

const void* stage_bytes(const void* host, size_t bytes) {
  static Staging s;
  size_t need = size_t(ceil_div(int64_t(bytes), Staging::kAlignment)) * Staging::kAlignment;
  if (s.used + need > s.bytes) s.grow(need > Staging::kBytes / 4 ? 4 * need : Staging::kBytes);
  char *from = s.host + s.used, *to = s.device + s.used;
  s.used += need;
  std::memcpy(from, host, bytes);
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()));
  return to;
}

void* scratch_bytes(size_t bytes) {
  static void* memory = nullptr;
  static size_t size = 0;
  if (bytes > size) {
    if (memory) CUDA_CHECK(cudaFreeAsync(memory, stream()));
    size = bytes + bytes / 4;
    CUDA_CHECK(cudaMallocAsync(&memory, size, stream()));
  }
  return memory;
}
