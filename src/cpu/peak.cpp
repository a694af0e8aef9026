// What the machine can do: as many independent fma chains as hide the instruction's latency, for the benchmarks to
// compare with.
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

}  // namespace ISA
