#include "simt.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "cuda_runtime.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt {
namespace {

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(128 << 10);
  bool done = false;
  std::string waits_for;
  char deposit[16];
};
std::vector<Fiber> fibers;
ucontext_t scheduler;
int current = 0;
std::vector<uint32_t> memory;
std::mt19937 order(1);
std::function<void()> body;
Grid launched;

void resume(int i) {
  current = i;
  threadIdx = {unsigned(i) % blockDim.x, unsigned(i) / blockDim.x % blockDim.y, unsigned(i) / blockDim.x / blockDim.y};
  swapcontext(&scheduler, &fibers[i].context);
}

void run_fiber() {
  body();
  fibers[current].done = true;
  swapcontext(&fibers[current].context, &scheduler);
}

std::string text(const char* what, std::source_location w) {
  return std::string(what) + ", " + w.file_name() + ":" + std::to_string(w.line());
}

void meet(int first, int last, unsigned mask, const std::string& place) {
  Fiber& me = fibers[current];
  me.waits_for = place;
  auto takes_part = [&](int i) { return !fibers[i].done && (last - first > 32 || mask >> (i - first) & 1); };
  bool all = true;
  for (int i = first; i < last; ++i)
    if (takes_part(i)) all &= fibers[i].waits_for == place;
  if (all) {
    for (int i = first; i < last; ++i)
      if (takes_part(i)) fibers[i].waits_for.clear();
    return;
  }
  swapcontext(&me.context, &scheduler);
}

void run_block(int threads) {
  if (int(fibers.size()) < threads) fibers.resize(threads);
  std::fill(memory.begin(), memory.end(), 0x7fc00000u);
  for (int i = 0; i < threads; ++i) {
    Fiber& f = fibers[i];
    f.done = false, f.waits_for.clear();
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data(), f.context.uc_stack.ss_size = f.stack.size();
    makecontext(&f.context, run_fiber, 0);
  }
  std::vector<int> ready;
  for (;;) {
    bool alive = false;
    ready.clear();
    for (int i = 0; i < threads; ++i) {
      alive |= !fibers[i].done;
      if (!fibers[i].done && fibers[i].waits_for.empty()) ready.push_back(i);
    }
    if (!alive) return;
    if (ready.empty()) {
      for (int i = 0; i < threads; ++i)
        if (!fibers[i].done)
          std::fprintf(stderr, "%s: block %u thread %d is stuck at %s\n", launched.where.function_name(), blockIdx.x, i,
                       fibers[i].waits_for.c_str());
      std::abort();
    }
    std::shuffle(ready.begin(), ready.end(), order);
    for (int i : ready) resume(i);
  }
}

}  // namespace

void* block_memory() { return memory.data(); }
int lane() { return current % 32; }

void meet_block(std::source_location where) {
  meet(0, int(blockDim.x * blockDim.y * blockDim.z), ~0u, text("__syncthreads", where));
}

void exchange(void* got, const void* given, size_t bytes, unsigned mask, int lane, std::source_location where) {
  int warp = current / 32 * 32, last = std::min<int>(warp + 32, int(blockDim.x * blockDim.y * blockDim.z)),
      me = current;
  std::memcpy(fibers[me].deposit, given, bytes);
  meet(warp, last, mask, text("a warp collective", where));
  std::memcpy(got, fibers[warp + lane].deposit, bytes);
  meet(warp, last, mask, text("read of a warp collective", where));
}

void run(const Grid& grid, dim3 block, size_t shared_bytes, std::function<void()> thread) {
  launched = grid, gridDim = grid.size, blockDim = block, body = thread;
  memory.resize(shared_bytes / 4 + 32);
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) run_block(int(block.x * block.y * block.z));
}

}  // namespace simt

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : error == cudaSuccess ? "no error" : "invalid argument";
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return *s = nullptr, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMalloc(void** p, size_t bytes) {
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* p) { return std::free(p), cudaSuccess; }
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) { return cudaMalloc(p, bytes); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
cudaError_t cudaMallocHost(void** p, size_t bytes) { return cudaMalloc(p, bytes); }
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t) {
  return std::memset(to, byte, bytes), cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) {
  const char* devices = std::getenv("FULLBAND_SIMT_DEVICES");
  *n = devices ? std::atoi(devices) : 0;
  return *n > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int* v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = size_t(1) << 40, cudaSuccess; }
