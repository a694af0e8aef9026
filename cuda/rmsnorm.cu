// RMSNorm on the GPU; formulas beside the CPU's (src/cpu/rmsnorm.cpp).
//
// Bound by memory. One warp a row: forward reads x twice, the second time from cache, and writes y; backward reads x and dy
// twice and updates dx. dgain sums over rows: each block sums a slab of rows, column by column, into a row of partial sums,
// and a second kernel adds the slabs in order. No atomics, so every run gives the same bits.
#include "fit.cuh"
#include "reduce.cuh"
#include "slabs.cuh"
#include "vec.cuh"

namespace {

constexpr int kWarps = 4;  // rows a block

template <class T>
__global__ void rmsnorm_forward_kernel(T* y, float* rrms, const T* x, const float* gain, int rows, int width,
                                       float eps) {
  int lane = threadIdx.x % kWarp;
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= rows) return;  // a whole warp leaves together
  x += row * width, y += row * width;
  float sum = 0;
  each_piece(x, width, lane, kWarp, [&](int64_t i, auto n) {
    auto piece = load<n>(x + i);
    for (int v = 0; v < n; ++v) sum = fmaf(piece[v], piece[v], sum);
  });
  float r = 1 / sqrtf(warp_sum(sum) / float(width) + eps);
  each_piece(x, width, lane, kWarp, [&](int64_t i, auto n) {
    auto piece = load<n>(x + i);
    for (int v = 0; v < n; ++v) piece.set(v, gain[i + v] * (piece[v] * r));
    store(y + i, piece);
  });
  if (lane == 0) rrms[row] = r;
}

template <class T>
void rmsnorm_forward(T* y, float* rrms, const T* x, const float* gain, int rows, int width, float eps) {
  if (rows == 0) return;
  launch(rmsnorm_forward_kernel<T>, blocks_for(rows, kWarps), kWarps * kWarp, 0, stream(), y, rrms, x, gain, rows,
         width, eps);
}

template <class T>
__global__ void rmsnorm_backward_kernel(T* dx, const T* dy, const T* x, const float* gain, const float* rrms, int rows,
                                        int width) {
  int lane = threadIdx.x % kWarp;
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  dx += row * width, dy += row * width, x += row * width;
  float sum = 0, r = rrms[row];
  each_piece(x, width, lane, kWarp, [&](int64_t i, auto n) {
    auto xs = load<n>(x + i), dys = load<n>(dy + i);
    for (int v = 0; v < n; ++v) sum = fmaf(gain[i + v] * dys[v], xs[v], sum);
  });
  float s = -warp_sum(sum) * r * r * r / float(width);
  each_piece(x, width, lane, kWarp, [&](int64_t i, auto n) {
    auto xs = load<n>(x + i), dys = load<n>(dy + i), dxs = load<n>(dx + i);
    for (int v = 0; v < n; ++v) dxs.set(v, dxs[v] + fmaf(xs[v], s, gain[i + v] * dys[v] * r));
    store(dx + i, dxs);
  });
}

// A thread a column, a block a slab of rows (y) and 128 columns (x).
template <class T>
__global__ void gain_slabs_kernel(float* partial, const T* dy, const T* x, const float* rrms, int rows, int width,
                                  int slab) {
  int column = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= width) return;
  int first = int(blockIdx.y) * slab, end = min(rows, first + slab);
  float sum = 0;
  for (int row = first; row < end; ++row) {
    int64_t at = int64_t(row) * width + column;
    sum = fmaf(to_float(dy[at]), to_float(x[at]) * rrms[row], sum);
  }
  partial[int64_t(blockIdx.y) * width + column] = sum;
}

template <class T>
void rmsnorm_backward(T* dx, float* dgain, const T* dy, const T* x, const float* gain, const float* rrms, int rows,
                      int width) {
  if (rows == 0) return;
  launch(rmsnorm_backward_kernel<T>, blocks_for(rows, kWarps), kWarps * kWarp, 0, stream(), dx, dy, x, gain, rrms, rows,
         width);
  Slabs slabs(rows);
  float* partial = scratch<float>(int64_t(slabs.count) * width);
  launch(gain_slabs_kernel<T>, dim3(blocks_for(width, 128), slabs.count), 128, 0, stream(), partial, dy, x, rrms, rows,
         width, slabs.rows);
  add_slabs(dgain, partial, slabs.count, width);
}

}  // namespace

template <class T>
void add_rmsnorm(Kernels& table) {
  table.rmsnorm_forward = Fit<rmsnorm_forward<T>>();
  table.rmsnorm_backward = Fit<rmsnorm_backward<T>>();
}
template void add_rmsnorm<float>(Kernels&);
template void add_rmsnorm<bf16>(Kernels&);
