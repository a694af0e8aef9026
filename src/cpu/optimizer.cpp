// The optimizers' sweeps: gradient norm, AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101), and the elementwise parts
// of NorMuon (arXiv:2510.05491). All are bound by memory: everything is read and written once. Threads share elements
// or rows.
#include "lanes.h"
#include "tables.h"
#include "workspace.h"

namespace ISA {

void sum_squares(double* sum_of_all, const float* x, int64_t n) {
  constexpr int64_t kBlock = 4096;
  int64_t blocks = (n + kBlock - 1) / kBlock;
  float* partial = thread_workspace(2, blocks);
  parallel_for(blocks, blocks > 4, [&](int64_t block) {
    int64_t first = block * kBlock, count = n - first < kBlock ? n - first : kBlock;
    Lanes square = {};
    each_piece(int(count), [&](int i, int length) {
      Lanes v = load(x + first + i, length);
      square = fma(v, v, square);
    });
    partial[block] = sum(square);
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += double(partial[block]);
  *sum_of_all = total;
}

void adamw(float* p, float* m, float* v, const float* g, int64_t n, AdamStep step) {
  Lanes lr = splat(step.lr), beta1 = splat(step.beta1), beta2 = splat(step.beta2), eps = splat(step.eps);
  Lanes decay = splat(step.decay), grad_scale = splat(step.grad_scale), one = splat(1.0f);
  Lanes correction1 = splat(step.correction1), correction2 = splat(step.correction2);
  each_piece_in_parallel(n, [&](int64_t i, int count) {
    Lanes gradient = load(g + i, count) * grad_scale, weight = load(p + i, count);
    Lanes first = fma(beta1, load(m + i, count), (one - beta1) * gradient);
    Lanes second = fma(beta2, load(v + i, count), (one - beta2) * (gradient * gradient));
    Lanes move = (first * correction1) / (sqrt(second * correction2) + eps);
    store(m + i, first, count);
    store(v + i, second, count);
    store(p + i, weight - lr * (decay * weight) - lr * move, count);
  });
}

void blend(float* y, const float* x, float alpha, float beta, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) {
    store(y + i, fma(splat(alpha), load(x + i, count), splat(beta) * load(y + i, count)), count);
  });
}

void row_normalize(float* x, float* v, float beta2, float eps, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    float* xr = x + size_t(row) * width;
    Lanes square = {};
    each_piece(width, [&](int i, int n) {
      Lanes piece = load(xr + i, n);
      square = fma(piece, piece, square);
    });
    v[row] = fma(beta2, v[row], (1.0f - beta2) * (sum(square) / float(width)));
    Lanes divisor = splat(__builtin_sqrtf(v[row]) + eps);
    each_piece(width, [&](int i, int n) { store(xr + i, load(xr + i, n) / divisor, n); });
  });
}

}  // namespace ISA
