// Matrix products: y = x wᵀ and its two gradients, dx = dy w and dw += dyᵀ x.
//
// Each output element is one fma chain in increasing inner index. Bound by arithmetic (2 · rows · in · out operations):
// the inner dimension is cut into blocks whose right factor, a strip of kTileColumns columns, is packed and stays in
// the second-level cache while all rows of the left factor pass by. Threads share strips, and rows where strips are
// few.
#include "kernels.h"
#include "tables.h"
#include "tile.h"
#include "workspace.h"

namespace ISA {

// How the right factor, inner × columns, lies in memory.
struct Right {
  const float* p;
  size_t row;
  bool transposed;  // element (k, j) is p[j · row + k], else p[k · row + j]
};

static void multiply_packed(float* c, size_t c_row, Left a, Right b, int rows, int depth, int columns,
                            bool accumulate) {
  constexpr int kDepth = 512;  // inner indices a block: a packed strip of 512 × 32 floats is 64 KiB
  int strips = (columns + kTileColumns - 1) / kTileColumns;
  bool worthwhile = worth_threads(int64_t(rows) * depth * columns / 8);
  int threads = worthwhile ? thread_count() : 1;
  int chunks = strips % threads == 0 || strips >= 8 * threads ? 1 : threads;
  int chunk_rows = round_up((rows + chunks - 1) / chunks, kTileRows);
  parallel_for(int64_t(chunks) * strips, worthwhile, [&](int64_t task) {
    int chunk = int(task / strips), strip = int(task % strips);
    int row = chunk * chunk_rows, count = rows - row < chunk_rows ? rows - row : chunk_rows;
    int column = strip * kTileColumns, wide = columns - column < kTileColumns ? columns - column : kTileColumns;
    float* packed = thread_workspace(0, size_t(kDepth) * kTileColumns);
    for (int k = 0; k < depth && count > 0; k += kDepth) {
      int inner = depth - k < kDepth ? depth - k : kDepth;
      if (b.transposed)
        pack_transposed(packed, b.p + column * b.row + k, b.row, inner, wide, kTileColumns);
      else
        pack_rows(packed, b.p + k * b.row + column, b.row, inner, wide, kTileColumns);
      multiply_strip(c + row * c_row + column, c_row, {a.p + row * a.row + k * a.step, a.row, a.step}, packed,
                     kTileColumns, count, inner, wide, accumulate || k > 0);
    }
  });
}

void matmul_forward(float* y, const float* x, const float* w, int rows, int in, int out) {
  multiply_packed(y, out, {x, size_t(in), 1}, {w, size_t(in), true}, rows, in, out, false);
}

void matmul_backward_input(float* dx, const float* dy, const float* w, int rows, int in, int out, bool accumulate) {
  multiply_packed(dx, in, {dy, size_t(out), 1}, {w, size_t(in), false}, rows, out, in, accumulate);
}

void matmul_backward_weight(float* dw, const float* dy, const float* x, int rows, int in, int out) {
  multiply_packed(dw, in, {dy, 1, size_t(out)}, {x, size_t(in), false}, out, rows, in, true);
}

}  // namespace ISA
