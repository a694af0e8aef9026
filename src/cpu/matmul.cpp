// Matrix products: y = x wᵀ and its two gradients, dx = dy w and dw += dyᵀ x.
//
// Each output element is one fma chain in increasing inner index. Bound by arithmetic (2 · rows · in · out operations),
// if memory is kept out of the way: the left factor is packed in panels of kTileRows rows, shared by the threads, the
// right one in strips of kTileColumns columns, by the thread that needs it; a block of each stays in the caches while
// tiles of panel × strip pass through the registers. Threads share strips, and panels where strips are few.
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

// A block of the left factor: rows × depth, as panels or as it lies.
class LeftBlock {
 public:
  // Packing costs about as much as the block's product with four columns.
  LeftBlock(Left a, int rows, int depth, bool pack, bool worthwhile)
      : a_(a), depth_(depth), stride_(round_up(depth * kTileRows, kWidth) + kWidth) {
    if (!pack) return;
    int panels = (rows + kTileRows - 1) / kTileRows;
    packed_ = thread_workspace(3, panels * stride_);
    parallel_for(panels, worthwhile, [&](int64_t panel) {
      int row = int(panel) * kTileRows;
      pack_panel(packed_ + panel * stride_, {a.p + row * a.row, a.row, a.step},
                 rows - row < kTileRows ? rows - row : kTileRows);
    });
  }

  // The product of rows [row, row + count), row a multiple of kTileRows, with a packed strip.
  void multiply(float* c, size_t c_row, const float* strip, int row, int count, int columns, bool from_c) const {
    if (!packed_)
      return multiply_strip(c, c_row, {a_.p + row * a_.row, a_.row, a_.step}, strip, kTileColumns, count, depth_,
                            columns, from_c);
    Panel panel{packed_ + row / kTileRows * stride_};
    for (; count > 0; count -= kTileRows, panel.p += stride_, c += kTileRows * c_row)
      tile_of_rows<kTileRows>(count < kTileRows ? count : kTileRows, c, c_row, panel, strip, kTileColumns, depth_,
                              columns, from_c);
  }

 private:
  void pack_panel(float* out, Left a, int rows) const {
    if (a.step == 1) return pack_transposed(out, a.p, a.row, depth_, rows, kTileRows);
    if (rows == kTileRows)
      for (int k = 0; k < depth_; ++k) std::memcpy(out + k * kTileRows, a.p + k * a.step, kTileRows * sizeof(float));
    else
      pack_rows(out, a.p, a.step, depth_, rows, kTileRows);
  }

  Left a_;
  int depth_;
  size_t stride_;
  float* packed_ = nullptr;
};

// Cuts n into equal blocks of at most `most`.
static int block_size(int n, int most) {
  int blocks = (n + most - 1) / most;
  return (n + blocks - 1) / blocks;
}

static void multiply_packed(float* c, size_t c_row, Left a, Right b, int rows, int depth, int columns,
                            bool accumulate) {
  constexpr int kDepth = 768, kRows = 32 * kTileRows, kFewStrips = 3;
  int strips = (columns + kTileColumns - 1) / kTileColumns;
  bool worthwhile = worth_threads(int64_t(rows) * depth * columns / 8), pack = strips > kFewStrips;
  int threads = worthwhile ? thread_count() : 1;
  int depth_block = block_size(depth, kDepth), row_block = pack ? round_up(block_size(rows, kRows), kTileRows) : rows;
  for (int first_row = 0; first_row < rows; first_row += row_block)
    for (int k = 0; k < depth; k += depth_block) {
      int block_rows = rows - first_row < row_block ? rows - first_row : row_block;
      int inner = depth - k < depth_block ? depth - k : depth_block;
      LeftBlock left({a.p + first_row * a.row + k * a.step, a.row, a.step}, block_rows, inner, pack, worthwhile);
      int chunks = strips % threads == 0 || strips >= 8 * threads ? 1 : threads;
      int chunk_rows = round_up((block_rows + chunks - 1) / chunks, kTileRows);
      parallel_for(int64_t(chunks) * strips, worthwhile, [&](int64_t task) {
        int row = int(task / strips) * chunk_rows, column = int(task % strips) * kTileColumns;
        int count = block_rows - row < chunk_rows ? block_rows - row : chunk_rows;
        int wide = columns - column < kTileColumns ? columns - column : kTileColumns;
        if (count <= 0) return;
        float* strip = thread_workspace(0, size_t(kDepth) * kTileColumns);
        if (b.transposed)
          pack_transposed(strip, b.p + column * b.row + k, b.row, inner, wide, kTileColumns);
        else
          pack_rows(strip, b.p + k * b.row + column, b.row, inner, wide, kTileColumns);
        left.multiply(c + (first_row + row) * c_row + column, c_row, strip, row, count, wide, accumulate || k > 0);
      });
    }
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
