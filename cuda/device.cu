#include "device.cuh"

#include <algorithm>
#include <cstring>
#include <vector>

#include "staging.cuh"

cudaStream_t stream() {
  static cudaStream_t the_stream = [] {
    cudaStream_t s;
    CUDA_CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
  }();
  return the_stream;
}

void wait() { CUDA_CHECK(cudaStreamSynchronize(stream())); }

void Staging::resize(size_t wanted) {
  if (host) cudaFreeHost(host), cudaFree(device);  // no check: at the end of a program the driver may be gone
  host = device = nullptr, bytes = wanted, used = 0;
  if (wanted == 0) return;
  CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&host), wanted));
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&device), wanted));
}

char* Staging::put(const void* data, size_t size, size_t* at) {
  constexpr size_t kAlignment = 256;
  size_t need = size_t(ceil_div(int64_t(size), kAlignment)) * kAlignment;
  if (used + need > bytes) return nullptr;
  *at = used;
  std::memcpy(host + used, data, size);
  used += need;
  return device + *at;
}

Staging*& staging_of_graph() {
  static Staging* staging = nullptr;
  return staging;
}

static size_t all_staged = 0;
size_t bytes_staged() { return all_staged; }

const void* stage_bytes(const void* data, size_t size) {
  constexpr size_t kLeast = 16 << 20;  // much more than one operation asks for
  // Live as long as the device does. Only the last is used; the smaller ones hold what an operation staged before it grew.
  static auto& all = *new std::vector<Staging*>{new Staging};
  Staging* own = all.back();
  size_t at = 0;
  all_staged += size + 256;
  if (Staging* graph = staging_of_graph()) {
    char* place = graph->put(data, size, &at);
    place ? void(enters(at, size)) : work_differs();
    return place;
  }
  char* place = own->put(data, size, &at);
  if (!place) {
    wait();  // what earlier operations staged has been used
    own->used = 0;
    if (4 * size > own->bytes) {
      all.push_back(own = new Staging);
      own->resize(std::max(4 * size, kLeast));
    }
    place = own->put(data, size, &at);
  }
  CUDA_CHECK(cudaMemcpyAsync(place, own->host + at, size, cudaMemcpyHostToDevice, stream()));
  return place;
}

void set_zero(void* memory, size_t bytes) {
  if (bytes > 0 && enters(memory, bytes)) CUDA_CHECK(cudaMemsetAsync(memory, 0, bytes, stream()));
}

void* scratch_bytes(size_t bytes) {
  static void* memory = nullptr;
  static size_t size = 0;
  if (bytes > size) {
    if (staging_of_graph()) return work_differs(), memory;
    if (memory) CUDA_CHECK(cudaFree(memory));  // waits for who uses it
    memory = nullptr, size = 0;
    CUDA_CHECK(cudaMalloc(&memory, bytes + bytes / 4));
    size = bytes + bytes / 4;
  }
  return memory;
}
