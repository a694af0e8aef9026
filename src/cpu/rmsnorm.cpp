// RMSNorm on the CPU.
//
//   forward    y_i = g_i x_i r,                 r = (mean_j x_j² + eps)^(-1/2)
//   backward   from  ∂r/∂x_i = −r³ x_i / width:
//              dx_i = r g_i dy_i − x_i (r³ / width) Σ_j g_j dy_j x_j
//              dg_i = Σ_rows dy_i x_i r
//
// Bound by memory: forward reads x twice, the second time from cache, and writes y; backward reads x and dy twice and
// updates dx. Rows are independent, so threads share the rows; dgain sums over rows, so there they share the columns
// and each column is summed in row order, by blocks. Either way no result depends on the number of threads.
#include "rmsnorm.h"

#include "tables.h"

namespace ISA {

void rmsnorm_forward(float* y, float* rrms, const float* x, const float* gain, int rows, int width, float eps) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    const float* xr = x + size_t(row) * width;
    rrms[row] = reciprocal_rms(xr, width, eps);
    normalize_row(y + size_t(row) * width, xr, gain, rrms[row], width);
  });
}

void rmsnorm_backward(float* dx, float* dgain, const float* dy, const float* x, const float* gain, const float* rrms,
                      int rows, int width) {
  constexpr int kColumns = 32;  // columns a task: whole cache lines, so that threads do not share one
  int blocks = (width + kColumns - 1) / kColumns;
  parallel(worth_threads(int64_t(rows) * width), [&](int thread, int threads) {
    for (int64_t row = int64_t(rows) * thread / threads; row < int64_t(rows) * (thread + 1) / threads; ++row) {
      size_t at = size_t(row) * width;
      normalize_row_backward(dx + at, dy + at, x + at, gain, rrms[row], width);
    }
    for (int block = blocks * thread / threads; block < blocks * (thread + 1) / threads; ++block) {
      int first = block * kColumns;
      int columns = width - first < kColumns ? width - first : kColumns;
      each_piece(columns, [&](int i, int n) {
        Lanes total = load(dgain + first + i, n);
        each_block_of_rows(rows, [&](int row, int end) {
          Lanes block = {};
          for (; row < end; ++row) {
            size_t at = size_t(row) * width + first + i;
            block = fma(load(dy + at, n), load(x + at, n) * splat(rrms[row]), block);
          }
          total = total + block;
        });
        store(dgain + first + i, total, n);
      });
    }
  });
}

}  // namespace ISA
