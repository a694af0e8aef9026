// What the GPU can do, for the benchmarks to compare with: as many independent fma chains as hide the instruction's
// latency; memory read, and read and written, once. Each waits for the end, so that the time of the call is the time of
// the work.
#include "device.cuh"
#include "log.h"
#include "ops.cuh"
#include "pieces.cuh"

namespace {

// --- Arithmetic

constexpr int kFmaThreads = 256, kChains = 8, kRounds = 512;
constexpr double kOperations = 2.0 * kFmaThreads * kChains * kRounds;  // a block

__global__ void fma_kernel(float* seen, float factor, float term) {
  float chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = float(threadIdx.x + unsigned(c) + 1);
  for (int round = 0; round < kRounds; ++round)
    for (int c = 0; c < kChains; ++c) chain[c] = fmaf(chain[c], factor, term);
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += chain[c];
  if (sum == 0) *seen = sum;  // never; but so the chains are computed
}

// Four times as many blocks again and again, until they take milliseconds: what a larger launch takes outweighs all
// before it, in which not every multiprocessor has work.
double peak_fma() {
  float* seen = scratch<float>(1);
  double operations = 0, seconds = 0;
  for (unsigned blocks = 1; seconds < 3e-3; blocks *= 4) {
    double start = seconds_now();
    launch(fma_kernel, blocks, kFmaThreads, 0, stream(), seen, 0.999f, 1e-3f);
    wait();
    seconds = seconds_now() - start;
    operations += blocks * kOperations;
  }
  return operations;
}

// --- Memory

constexpr int kReadThreads = 128, kRead = 4096;  // floats a block

struct ReadTile {
  Shared<float> warp_sums[32];
};

__global__ void stream_read_kernel(float* sums, const float* x, int64_t n) {
  Stretch s = stretch_of(blockIdx.x, n, kRead);
  float sum = 0;
  each_piece(x + s.first, s.count, int(threadIdx.x), kReadThreads, [&](int64_t i, auto count) {
    auto piece = load<count>(x + s.first + i);
    for (int v = 0; v < count; ++v) sum += piece[v];
  });
  sum = block_sum(sum, shared<ReadTile>().warp_sums);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Returns the first block's sum.
float stream_read(const float* x, int64_t n) {
  if (n == 0) return 0;
  unsigned blocks = blocks_for(n, kRead);
  float *sums = scratch<float>(blocks), first = 0;
  launch(stream_read_kernel, blocks, kReadThreads, sizeof(ReadTile), stream(), sums, x, n);
  CUDA_CHECK(cudaMemcpyAsync(&first, sums, sizeof first, cudaMemcpyDeviceToHost, stream()));
  wait();
  return first;
}

__global__ void stream_update_kernel(float* a, float* b, float* c, const float* d, int64_t n) {
  each_piece_of(stretch_of_block<float>(n), together(a, b, c, d), a, [&](int64_t i, auto count) {
    auto as = load<count>(a + i), bs = load<count>(b + i), cs = load<count>(c + i), ds = load<count>(d + i);
    for (int v = 0; v < count; ++v) as.set(v, as[v] + ds[v]), bs.set(v, bs[v] + ds[v]), cs.set(v, cs[v] + ds[v]);
    store(a + i, as), store(b + i, bs), store(c + i, cs);
  });
}

void stream_update(float* a, float* b, float* c, const float* d, int64_t n) {
  if (n == 0) return;
  launch(stream_update_kernel, count_stretches<float>(1, n), kStretchThreads, 0, stream(), a, b, c, d, n);
  wait();
}

}  // namespace

void add_peak(Kernels& table) {
  table.peak_fma = peak_fma;
  table.stream_read = stream_read;
  table.stream_update = stream_update;
}
