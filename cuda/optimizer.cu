// The optimizers' sweeps on the GPU: gradient norm, AdamW, and the elementwise parts of NorMuon; formulas beside the
// CPU's (src/cpu/optimizer.cpp).
//
// All are bound by memory: everything is read and written once, a thread a piece of 16 bytes. A sum of squares goes
// through blocks of 4096 elements in float, whose sums one block adds in double; a row is a warp's, which reads it
// twice, the second time from cache.
#include "device.cuh"
#include "ops.cuh"
#include "pieces.cuh"

namespace {

// --- Σ x²

constexpr int kSumThreads = 128, kSummed = 4096;  // elements a block

template <class X>
struct SumTile {
  Shared<X> warp_sums[32];
};

__global__ void block_squares_kernel(float* partial, const float* x, int64_t n) {
  Stretch s = stretch_of(blockIdx.x, n, kSummed);
  float sum = 0;
  each_piece(x + s.first, s.count, int(threadIdx.x), kSumThreads, [&](int64_t i, auto count) {
    auto piece = load<count>(x + s.first + i);
    for (int v = 0; v < count; ++v) sum = fmaf(piece[v], piece[v], sum);
  });
  sum = block_sum(sum, shared<SumTile<float>>().warp_sums);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

constexpr int kTotalThreads = kMostThreads;  // of one block

__global__ void total_kernel(double* total, const float* partial, int64_t n) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kTotalThreads) sum += double(partial[i]);
  sum = block_sum(sum, shared<SumTile<double>>().warp_sums);
  if (threadIdx.x == 0) *total = sum;
}

void sum_squares(double* sum, const float* x, int64_t n) {
  if (n == 0) return set_zero(sum, sizeof(double));
  unsigned blocks = blocks_for(n, kSummed);
  float* partial = scratch<float>(blocks);
  launch(block_squares_kernel, blocks, kSumThreads, sizeof(SumTile<float>), stream(), partial, x, n);
  launch(total_kernel, 1u, kTotalThreads, sizeof(SumTile<double>), stream(), sum, partial, blocks);
}

// --- Elements

__global__ void adamw_kernel(float* p, float* m, float* v, const float* g, int64_t n, AdamStep step) {
  each_piece_of(stretch_of_block<float>(n), together(p, m, v, g), p, [&](int64_t i, auto count) {
    auto ps = load<count>(p + i), ms = load<count>(m + i), vs = load<count>(v + i), gs = load<count>(g + i);
    for (int e = 0; e < count; ++e) {
      float gradient = gs[e] * step.grad_scale;
      float first = fmaf(step.beta1, ms[e], (1 - step.beta1) * gradient);
      float second = fmaf(step.beta2, vs[e], (1 - step.beta2) * (gradient * gradient));
      float move = (first * step.correction1) / (sqrtf(second * step.correction2) + step.eps);
      ms.set(e, first), vs.set(e, second);
      ps.set(e, ps[e] - step.lr * (step.decay * ps[e]) - step.lr * move);
    }
    store(p + i, ps), store(m + i, ms), store(v + i, vs);
  });
}

void adamw(float* p, float* m, float* v, const float* g, int64_t n, AdamStep step) {
  if (n == 0) return;
  launch(adamw_kernel, count_stretches<float>(1, n), kStretchThreads, 0, stream(), p, m, v, g, n, step);
}

__global__ void blend_kernel(float* y, const float* x, float alpha, float beta, int64_t n) {
  each_piece_of(stretch_of_block<float>(n), together(y, x), y, [&](int64_t i, auto count) {
    auto ys = load<count>(y + i), xs = load<count>(x + i);
    for (int v = 0; v < count; ++v) ys.set(v, fmaf(alpha, xs[v], beta * ys[v]));
    store(y + i, ys);
  });
}

void blend(float* y, const float* x, float alpha, float beta, int64_t n) {
  if (n == 0) return;
  launch(blend_kernel, count_stretches<float>(1, n), kStretchThreads, 0, stream(), y, x, alpha, beta, n);
}

// --- Rows

constexpr int kWarps = 4;  // rows a block

__global__ void row_normalize_kernel(float* x, float* v, float beta2, float eps, int rows, int width) {
  int lane = int(threadIdx.x) % kWarp;
  int64_t row = int64_t(blockIdx.x) * kWarps + int(threadIdx.x) / kWarp;
  if (row >= rows) return;  // a whole warp leaves together
  x += row * width;
  float sum = 0, before = v[row];
  each_piece(x, width, lane, kWarp, [&](int64_t i, auto n) {
    auto piece = load<n>(x + i);
    for (int e = 0; e < n; ++e) sum = fmaf(piece[e], piece[e], sum);
  });
  float second = fmaf(beta2, before, (1 - beta2) * (warp_sum(sum) / float(width)));  // all lanes have read v[row]
  float divisor = sqrtf(second) + eps;
  each_piece(x, width, lane, kWarp, [&](int64_t i, auto n) {
    auto piece = load<n>(x + i);
    for (int e = 0; e < n; ++e) piece.set(e, piece[e] / divisor);
    store(x + i, piece);
  });
  if (lane == 0) v[row] = second;
}

void row_normalize(float* x, float* v, float beta2, float eps, int rows, int width) {
  if (rows == 0) return;
  launch(row_normalize_kernel, blocks_for(rows, kWarps), kWarps * kWarp, 0, stream(), x, v, beta2, eps, rows, width);
}

}  // namespace

void add_optimizer(Kernels& floats) {
  floats.sum_squares = sum_squares;
  floats.adamw = adamw;
  floats.blend = blend;
  floats.row_normalize = row_normalize;
}
