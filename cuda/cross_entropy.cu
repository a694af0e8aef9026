// Softmax cross-entropy of rows of logits on the GPU: loss, the best token and, in place, the gradient; formulas beside the
// CPU's (src/cpu/cross_entropy.cpp).
//
// Bound by memory: a block a row reads it once for the maximum and the sum of exponentials, which every thread keeps for its
// own elements, the sum rescaled where the maximum grows; and for the gradient reads it again, mostly from cache, and writes
// it. The block then joins maxima, sums and the first best index in one order.
#include "best.cuh"
#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "vec.cuh"

namespace {

constexpr int kThreads = 256;

struct Tile {
  BestScratch best;
  Shared<float> sum[kWarp];
};

// A thread's maximum so far, where it is, and the sum of exp(x − maximum).
struct Softmax {
  Best best;
  float sum = 0;
  template <class Piece, class N>
  __device__ void see(const Piece& piece, int i, N n) {
    float before = best.value;
    for (int v = 0; v < n; ++v) best.see(piece[v], i + v);
    if (best.value > before) sum *= expf(before - best.value);
    for (int v = 0; v < n; ++v) sum += expf(piece[v] - base());
  }
  // What is subtracted: the maximum, or where there is none yet, anything that is a number.
  __device__ float base() const { return best.value == -INFINITY ? 0 : best.value; }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(double* loss, double* z_squared, int* best, T* logits, const int* target, const float* weight,
                         float z_loss, int vocab) {
  auto& tile = shared<Tile>();
  int64_t row = blockIdx.x;
  T* x = logits + row_at(row, vocab);
  int wanted = target[row];
  float score = to_float(x[wanted]);

  Softmax mine;
  each_piece(x, vocab, int(threadIdx.x), kThreads, [&](int64_t i, auto n) { mine.see(load<n>(x + i), int(i), n); });
  Best all = block_best(mine.best, tile.best);
  float l = block_sum(mine.sum * expf(mine.best.value - all.value), tile.sum);
  double lse = double(all.value) + log(double(l));
  if (threadIdx.x == 0) {
    loss[row] = lse - double(score);
    if (z_squared) z_squared[row] = lse * lse;
    if (best) best[row] = all.index;
  }
  if (!weight) return;
  float w = weight[row], z = z_loss > 0 ? 2 * z_loss * float(lse) * w : 0, reciprocal = 1 / l;
  each_piece(x, vocab, int(threadIdx.x), kThreads, [&](int64_t i, auto n) {
    auto piece = load<n>(x + i);
    for (int v = 0; v < n; ++v) {
      float p = expf(piece[v] - all.value) * reciprocal, g = (i + v == wanted ? p - 1 : p) * w;
      piece.set(v, z_loss > 0 ? fmaf(z, p, g) : g);
    }
    store(x + i, piece);
  });
}

template <class T>
void cross_entropy(double* loss, double* z_squared, int* best, T* logits, const int* target, const float* weight,
                   float z_loss, int rows, int vocab) {
  if (rows == 0) return;
  const int* targets = stage(target, rows);
  launch(cross_entropy_kernel<T>, blocks_for(rows, 1), kThreads, sizeof(Tile), stream(), loss, z_squared, best, logits,
         targets, stage(weight, rows), z_loss, vocab);
}

}  // namespace

template <class T>
void add_cross_entropy(Kernels& table) {
  table.cross_entropy = Fit<cross_entropy<T>>();
}
template void add_cross_entropy<float>(Kernels&);
template void add_cross_entropy<bf16>(Kernels&);
