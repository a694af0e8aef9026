// What the machine can do, for the benchmarks to compare with: as many independent fma chains as hide the instruction's
// latency; memory read, and read and written, in long runs.
#include <atomic>

#include "lanes.h"
#include "tables.h"

namespace ISA {

double peak_fma() {
  constexpr int kChains = 12;
  constexpr int64_t kRounds = 400000;
  std::atomic<int64_t> operations = 0;
  parallel(true, [&](int thread, int) {
    Vector chain[kChains], factor = splat_vector(0.999f), term = splat_vector(1e-3f * float(thread + 1));
    for (Vector& c : chain) c = splat_vector(1.0f);
    for (int64_t i = 0; i < kRounds; ++i)
#pragma GCC unroll 12
      for (int c = 0; c < kChains; ++c) chain[c] = fma(chain[c], factor, term);
    float seen = 0;
    for (const Vector& c : chain) seen += c[0];
    if (seen != 0) operations += kRounds * kChains * kWidth * 2;  // the results are used, so the chains are computed
  });
  return double(operations.load());
}

float stream_read(const float* x, int64_t n) {
  std::atomic<float> seen = 0;
  parallel(true, [&](int thread, int threads) {
    constexpr int kAhead = 8;  // vectors summed independently
    Lanes sums[kAhead] = {};
    int64_t i = n * thread / threads, end = n * (thread + 1) / threads;
    for (; i + kAhead * kLanes <= end; i += kAhead * kLanes)
#pragma GCC unroll 8
      for (int v = 0; v < kAhead; ++v) sums[v] = sums[v] + load(x + i + v * kLanes);
    for (const Lanes& s : sums) seen.store(seen.load() + sum(s));
  });
  return seen.load();
}

void stream_update(float* a, float* b, float* c, const float* d, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) {
    Lanes term = load(d + i, count);
    for (float* x : {a, b, c}) store(x + i, load(x + i, count) + term, count);
  });
}

}  // namespace ISA
