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
  void multiply(float* c, size_t c_row, Strip strip, int row, int count, int columns, bool from_c) const {
    if (!packed_)
      return multiply_strip(c, c_row, {a_.p + row * a_.row, a_.row, a_.step}, strip, count, depth_, columns, from_c);
    Panel panel{packed_ + row / kTileRows * stride_};
    for (; count > 0; count -= kTileRows, panel.p += stride_, c += kTileRows * c_row)
      tile_of_rows<kTileRows>(count < kTileRows ? count : kTileRows, c, c_row, panel, strip, depth_, columns, from_c);
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

// The right factor, inner × columns, as it lies in memory: element (k, j) is p[k · row + j], or p[j · row + k].
struct Right {
  const float* p;
  size_t row;
  bool transposed;
  // Its strip at `column`, inner indices [k, k + depth), packed into scratch memory of one thread.
  Strip strip(int column, int columns, int k, int depth) const {
    float* out = thread_workspace(0, size_t(depth) * kTileColumns);
    if (transposed)
      pack_transposed(out, p + column * row + k, row, depth, columns, kTileColumns);
    else
      pack_rows(out, p + k * row + column, row, depth, columns, kTileColumns);
    return {out, kTileColumns};
  }
};

// The right factor as pack_weight leaves it: strip after strip of depth × kTileColumns.
struct PackedRight {
  const float* p;
  int whole_depth;
  Strip strip(int column, int, int k, int) const {
    return {p + size_t(column) * whole_depth + size_t(k) * kTileColumns, kTileColumns};
  }
};
struct Bf16Right {
  const uint16_t* p;
  int whole_depth;
  Bf16Strip bf16_strip(int column) const { return {p + size_t(column) * whole_depth, kTileColumns}; }
  // In float, so that many rows share the conversion.
  Strip strip(int column, int, int k, int depth) const {
    float* out = thread_workspace(0, size_t(depth) * kTileColumns);
    Bf16Strip from{bf16_strip(column).p + size_t(k) * kTileColumns, kTileColumns};
    for (int i = 0; i < depth; ++i)
      for (int v = 0; v < 2; ++v) {
        Vector value = from(i, v);
        std::memcpy(out + size_t(i) * kTileColumns + v * kWidth, &value, sizeof value);
      }
    return {out, kTileColumns};
  }
};

template <class R>
static void multiply_blocks(float* c, size_t c_row, Left a, R b, int rows, int depth, int columns, bool accumulate) {
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
        left.multiply(c + (first_row + row) * c_row + column, c_row, b.strip(column, wide, k, inner), row, count, wide,
                      accumulate || k > 0);
      });
    }
}

void matmul_forward(float* y, const float* x, const float* w, int rows, int in, int out) {
  multiply_blocks(y, out, {x, size_t(in), 1}, Right{w, size_t(in), true}, rows, in, out, false);
}

void matmul_backward_input(float* dx, const float* dy, const float* w, int rows, int in, int out, bool accumulate) {
  multiply_blocks(dx, in, {dy, size_t(out), 1}, Right{w, size_t(in), false}, rows, out, in, accumulate);
}

void matmul_backward_weight(float* dw, const float* dy, const float* x, int rows, int in, int out) {
  multiply_blocks(dw, in, {dy, 1, size_t(out)}, Right{x, size_t(in), false}, out, rows, in, true);
}

// To nearest, ties to even; not-a-number stays one.
static uint16_t bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void pack_weight(void* packed, const float* w, int in, int out, bool to_bf16) {
  parallel_for((out + kTileColumns - 1) / kTileColumns, worth_threads(int64_t(in) * out), [&](int64_t strip) {
    int column = int(strip) * kTileColumns, columns = out - column < kTileColumns ? out - column : kTileColumns;
    size_t n = size_t(in) * kTileColumns, at = size_t(column) * in;
    float* to = to_bf16 ? thread_workspace(0, n) : static_cast<float*>(packed) + at;
    pack_transposed(to, w + size_t(column) * in, in, in, columns, kTileColumns);
    for (size_t i = 0; to_bf16 && i < n; ++i) static_cast<uint16_t*>(packed)[at + i] = bf16(to[i]);
  });
}

// A few rows read the weights once, as they come: bound by memory.
template <class R>
static void multiply_few_rows(float* y, const float* x, R strip_at, int rows, int in, int out) {
  parallel_for(
      (out + kTileColumns - 1) / kTileColumns, worth_threads(int64_t(rows) * in * out / 8), [&](int64_t strip) {
        int column = int(strip) * kTileColumns, columns = out - column < kTileColumns ? out - column : kTileColumns;
        tile_of_rows<kTileRows>(rows, y + column, out, Left{x, size_t(in), 1}, strip_at(column), in, columns, false);
      });
}

void matmul_packed(float* y, const float* x, const void* packed, int rows, int in, int out, bool is_bf16) {
  Left left{x, size_t(in), 1};
  PackedRight floats{static_cast<const float*>(packed), in};
  Bf16Right halves{static_cast<const uint16_t*>(packed), in};
  if (rows > kTileRows && is_bf16) return multiply_blocks(y, out, left, halves, rows, in, out, false);
  if (rows > kTileRows) return multiply_blocks(y, out, left, floats, rows, in, out, false);
  if (is_bf16)
    return multiply_few_rows(
        y, x, [&](int c) { return halves.bf16_strip(c); }, rows, in, out);
  multiply_few_rows(
      y, x, [&](int c) { return floats.strip(c, 0, 0, in); }, rows, in, out);
}

}  // namespace ISA
