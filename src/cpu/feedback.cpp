// Latent feedback between its matrix products: the carried state with its jitter, and the gate.
//
//   carry      h~_r = h_{source r} + δ ε,  ε uniform in [−1, 1) by key         (its gradient is scatter_add_rows)
//   gate       f = a ⊙ s,  a = W_U h~,  s = σ(W_G ê), one row of s a token, shared by all passes
//   backward   da = df ⊙ s;   dz += df ⊙ a ⊙ s ⊙ (1 − s)
//
// Bound by memory; threads share rows.
#include "lanes.h"
#include "random.h"
#include "tables.h"

namespace ISA {

void carry_forward(float* out, const float* h, const int* source, const uint64_t* noise_key, float delta, int rows,
                   int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    const float* from = h + size_t(source[row]) * width;
    float* to = out + size_t(row) * width;
    if (!(delta > 0)) return void(std::memcpy(to, from, width * sizeof(float)));
    each_piece(width, [&](int i, int n) {
      float noise[kLanes];
      for (int l = 0; l < kLanes; ++l) noise[l] = random_symmetric(noise_key[row], i + l);
      store(to + i, fma(splat(delta), load(noise), load(from + i, n)), n);
    });
  });
}

void concat_forward(float* pair, const float* e, const int* index, const float* h, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    std::memcpy(pair + size_t(row) * 2 * width, e + size_t(index[row]) * width, width * sizeof(float));
    std::memcpy(pair + (size_t(row) * 2 + 1) * width, h + size_t(row) * width, width * sizeof(float));
  });
}

void concat_backward(float* de, const int* index, float* dh, const float* dpair, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    const float* from = dpair + size_t(row) * 2 * width;
    float* to = de + size_t(index[row]) * width;
    each_piece(width, [&](int i, int n) { store(to + i, load(to + i, n) + load(from + i, n), n); });
    std::memcpy(dh + size_t(row) * width, from + width, width * sizeof(float));
  });
}

void gate_forward(float* f, const float* a, const float* s, const int* index, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    const float *ar = a + size_t(row) * width, *sr = s + size_t(index ? index[row] : row) * width;
    float* fr = f + size_t(row) * width;
    each_piece(width, [&](int i, int n) { store(fr + i, load(ar + i, n) * load(sr + i, n), n); });
  });
}

void gate_backward(float* da, float* dz, const float* df, const float* a, const float* s, const int* index, int rows,
                   int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    size_t own = size_t(row) * width, token = size_t(index ? index[row] : row) * width;
    each_piece(width, [&](int i, int n) {
      Lanes g = load(df + own + i, n), gate = load(s + token + i, n);
      Lanes slope = gate * (splat(1.0f) - gate);
      store(dz + token + i, load(dz + token + i, n) + g * load(a + own + i, n) * slope, n);
      store(da + own + i, g * gate, n);
    });
  });
}

}  // namespace ISA
