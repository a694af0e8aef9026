// Softmax cross-entropy of rows of logits: loss, the best token and, in place, the gradient.
//
//   loss   lse(x) − x_target, lse = log Σ_i exp(x_i)
//   grad   (softmax(x) − onehot) w  [+ z-loss: 2 c lse softmax(x) w, the gradient of c lse² w]
//
// Bound by exp and by memory: three sweeps over a row that stays in cache. Threads share rows.
#include "elementary.h"
#include "exact.h"
#include "tables.h"

namespace ISA {

static int first_best(const float* x, float m, int vocab) {
  for (int i = 0; i < vocab; ++i)
    if (x[i] == m) return i;
  return 0;  // a row of NaN
}

void cross_entropy(double* loss, double* z_squared, int* best, float* logits, const int* target, const float* weight,
                   float z_loss, int rows, int vocab) {
  parallel_for(rows, worth_threads(int64_t(rows) * vocab), [&](int64_t row) {
    float* x = logits + size_t(row) * vocab;
    const float none = -__builtin_inff();
    Lanes most = splat(none), total = {};
    each_piece(vocab, [&](int i, int n) { most = max(most, load(x + i, n, none)); });
    float m = greatest(most);
    if (best) best[row] = first_best(x, m, vocab);
    float score = x[target[row]];
    each_piece(vocab, [&](int i, int n) {
      Lanes e = exp(load(x + i, n) - splat(m));
      if (weight) store(x + i, e, n);
      total = total + (n == kLanes ? e : load((const float*)&e, n));
    });
    float l = sum(total);
    double lse = double(m) + exact_log(double(l));
    loss[row] = lse - double(score);
    if (z_squared) z_squared[row] = lse * lse;
    if (!weight) return;
    Lanes reciprocal = splat(1.0f / l), w = splat(weight[row]);
    Lanes z = splat(2.0f * z_loss * float(lse) * weight[row]);
    float p_target = x[target[row]] * (1.0f / l);
    each_piece(vocab, [&](int i, int n) {
      Lanes p = load(x + i, n) * reciprocal, g = p * w;
      store(x + i, z_loss > 0 ? fma(z, p, g) : g, n);
    });
    float g = (p_target - 1.0f) * weight[row];
    x[target[row]] = z_loss > 0 ? fma(z.part[0][0], p_target, g) : g;
  });
}

}  // namespace ISA
