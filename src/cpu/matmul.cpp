// Matrix products: y = x wᵀ and its two gradients, dx = dy w and dw += dyᵀ x.
//
// Each output element is one fma chain in increasing inner index; in dw, whose inner index are the rows, a chain for
// every kSummedRows of them. Bound by arithmetic (2 · rows · in · out operations), if memory is kept out of the way. The
// inner dimension is cut into blocks. In a block the left factor is packed in
// panels of kTileRows rows, by all threads together; the right one in groups of strips of kTileColumns columns, by the
// thread that needs them, where they stay in its second-level cache while all panels pass by. Threads share strips, or
// panels where strips are few.
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
    constexpr int kPanels = 4;  // packed together, so that memory is read in longer runs
    int panels = (rows + kTileRows - 1) / kTileRows;
    packed_ = thread_workspace(3, panels * stride_);
    parallel_for((panels + kPanels - 1) / kPanels, worthwhile, [&](int64_t four) {
      int panel = int(four) * kPanels, row = panel * kTileRows, count = rows - row;
      if (count > kPanels * kTileRows) count = kPanels * kTileRows;
      pack_panels(packed_ + panel * stride_, {a.p + row * a.row, a.row, a.step}, count);
    });
  }

  // The product of a panel's rows, `row` the first of them, with a strip. Chains that are added are at most kSummedRows
  // long; the tile of c stays in the first-level cache between them.
  void multiply(float* c, size_t c_row, Strip strip, int row, int rows, int columns, Chain chain) const {
    int most = chain == Chain::added ? kSummedRows : depth_;
    for (int k = 0; k < depth_; k += most) {
      int depth = depth_ - k < most ? depth_ - k : most;
      Strip from_k{strip.p + k * strip.step, strip.step};
      if (packed_)
        tile_of_rows<kTileRows>(rows, c, c_row, Panel{packed_ + row / kTileRows * stride_ + k * kTileRows}, from_k,
                                depth, columns, chain);
      else
        tile_of_rows<kTileRows>(rows, c, c_row, Left{a_.p + row * a_.row + k * a_.step, a_.row, a_.step}, from_k, depth,
                                columns, chain);
    }
  }

 private:
  void pack_panels(float* out, Left a, int rows) const {
    int whole = a.step == 1 ? 0 : rows / kTileRows;
    for (int k = 0; k < (whole > 0 ? depth_ : 0); ++k)
      for (int i = 0; i < whole; ++i)
        std::memcpy(out + i * stride_ + k * kTileRows, a.p + k * a.step + i * kTileRows, kTileRows * sizeof(float));
    for (int row = whole * kTileRows; row < rows; row += kTileRows) {
      int count = rows - row < kTileRows ? rows - row : kTileRows;
      float* to = out + row / kTileRows * stride_;
      if (a.step == 1)
        pack_transposed(to, a.p + row * a.row, a.row, depth_, count, kTileRows);
      else
        pack_rows(to, a.p + row, a.step, depth_, count, kTileRows);
    }
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

// A group of neighbouring strips of the right factor: inner indices [k, k + depth), the first strip at `column`.
struct Group {
  int column, columns, k, depth;
  int strips() const { return (columns + kTileColumns - 1) / kTileColumns; }
  size_t strip_floats() const { return size_t(depth) * kTileColumns; }
};

// The right factor, inner × columns, as it lies in memory: element (k, j) is p[k · row + j], or p[j · row + k].
struct Right {
  const float* p;
  size_t row;
  bool transposed;
  // The group's strips, one behind the other in `out`.
  Strip strips(Group g, float* out) const {
    if (transposed)
      pack_columns(g, out);
    else
      pack_whole_rows(g, out);
    return {out, kTileColumns};
  }

 private:
  void pack_columns(Group g, float* out) const {
    for (int i = 0; i < g.strips(); ++i, out += g.strip_floats()) {
      int column = i * kTileColumns, rest = g.columns - column;
      pack_transposed(out, p + (g.column + column) * row + g.k, row, g.depth, rest < kTileColumns ? rest : kTileColumns,
                      kTileColumns);
    }
  }
  // Row by row, so that memory is read in long runs.
  void pack_whole_rows(Group g, float* out) const {
    constexpr int kAhead = 8;  // rows
    int whole = g.columns / kTileColumns, rest = g.columns % kTileColumns;
    const float* from = p + g.k * row + g.column;
    for (int k = 0; k < g.depth; ++k, from += row, out += kTileColumns) {
      for (int i = 0; i < whole; ++i)
        for (int v = 0; v < 2; ++v) {
          Vector piece;
          const float* at = from + i * kTileColumns + v * kWidth;
          __builtin_prefetch(at + kAhead * row);
          std::memcpy(&piece, at, sizeof piece);
          std::memcpy(out + i * g.strip_floats() + v * kWidth, &piece, sizeof piece);
        }
      if (rest > 0) pack_rows(out + whole * g.strip_floats(), from + whole * kTileColumns, row, 1, rest, kTileColumns);
    }
  }
};

// The right factor as pack_weight leaves it: strip after strip of whole_depth × kTileColumns.
struct PackedRight {
  const float* p;
  int whole_depth;
  Strip strips(Group g, float*) const {
    return {p + size_t(g.column) * whole_depth + size_t(g.k) * kTileColumns, kTileColumns};
  }
};
struct Bf16Right {
  const uint16_t* p;
  int whole_depth;
  // In float, so that many rows share the conversion.
  Strip strips(Group g, float* out) const {
    float* to = out;
    for (int i = 0; i < g.strips(); ++i) {
      Bf16Strip from{p + (size_t(g.column) + size_t(i) * kTileColumns) * whole_depth + size_t(g.k) * kTileColumns,
                     kTileColumns};
      for (int k = 0; k < g.depth; ++k, to += kTileColumns)
        for (int v = 0; v < 2; ++v) {
          Vector value = from(k, v);
          std::memcpy(to + v * kWidth, &value, sizeof value);
        }
    }
    return {out, kTileColumns};
  }
};
// Floats from one strip of a group to the next.
template <class R>
static size_t strip_distance(const R&, Group g) {
  return g.strip_floats();
}
static size_t strip_distance(const PackedRight& right, Group) { return size_t(right.whole_depth) * kTileColumns; }

// One thread's part of a block's product: these rows (from a multiple of kTileRows on) and strips.
struct Part {
  int row, end_row, strip, end_strip;
};

static Part part_of(int thread, int threads, int rows, int strips) {
  if (strips % threads == 0 || strips >= 8 * threads)
    return {0, rows, int(int64_t(strips) * thread / threads), int(int64_t(strips) * (thread + 1) / threads)};
  int64_t panels = (rows + kTileRows - 1) / kTileRows;
  int end = int(panels * (thread + 1) / threads) * kTileRows;
  return {int(panels * thread / threads) * kTileRows, end < rows ? end : rows, 0, strips};
}

// c's first row is the left block's, its first column the right factor's.
template <class R>
static void multiply_part(float* c, size_t c_row, const LeftBlock& left, const R& right, Part part, int k, int depth,
                          int columns, Chain chain) {
  constexpr int kStrips = 4;  // in a group
  if (part.strip == part.end_strip) return;
  int most = block_size(part.end_strip - part.strip, kStrips) * kTileColumns;
  int end = part.end_strip * kTileColumns < columns ? part.end_strip * kTileColumns : columns;
  float* packed = thread_workspace(0, size_t(most) * depth);
  for (int first = part.strip * kTileColumns; first < end; first += most) {
    Group group{first, end - first < most ? end - first : most, k, depth};
    Strip strips = right.strips(group, packed);
    for (int row = part.row; row < part.end_row; row += kTileRows) {
      int rows = part.end_row - row < kTileRows ? part.end_row - row : kTileRows;
      Strip strip = strips;
      for (int j = 0; j < group.columns; j += kTileColumns, strip.p += strip_distance(right, group))
        left.multiply(c + row * c_row + first + j, c_row, strip, row, rows,
                      group.columns - j < kTileColumns ? group.columns - j : kTileColumns, chain);
    }
  }
}

template <class R>
static void multiply_blocks(float* c, size_t c_row, Left a, R b, int rows, int depth, int columns, Chain chain) {
  constexpr int kDepth = 3 * kSummedRows, kRows = 128 * kTileRows, kFewStrips = 3;
  int strips = (columns + kTileColumns - 1) / kTileColumns;
  bool worthwhile = worth_threads(int64_t(rows) * depth * columns / 8), pack = strips > kFewStrips;
  int depth_block = block_size(depth, kDepth);
  if (chain == Chain::added) depth_block = round_up(depth_block, kSummedRows);
  int row_block = pack ? round_up(block_size(rows, kRows), kTileRows) : rows;
  for (int row = 0; row < rows; row += row_block)
    for (int k = 0; k < depth; k += depth_block) {
      int block_rows = rows - row < row_block ? rows - row : row_block;
      int inner = depth - k < depth_block ? depth - k : depth_block;
      LeftBlock left({a.p + row * a.row + k * a.step, a.row, a.step}, block_rows, inner, pack, worthwhile);
      parallel(worthwhile, [&](int thread, int threads) {
        multiply_part(c + row * c_row, c_row, left, b, part_of(thread, threads, block_rows, strips), k, inner, columns,
                      chain == Chain::anew && k > 0 ? Chain::continued : chain);
      });
    }
}

void matmul_forward(float* y, const float* x, const float* w, int rows, int in, int out) {
  multiply_blocks(y, out, {x, size_t(in), 1}, Right{w, size_t(in), true}, rows, in, out, Chain::anew);
}

void matmul_backward_input(float* dx, const float* dy, const float* w, int rows, int in, int out, bool accumulate) {
  multiply_blocks(dx, in, {dy, size_t(out), 1}, Right{w, size_t(in), false}, rows, out, in,
                  accumulate ? Chain::continued : Chain::anew);
}

void matmul_backward_weight(float* dw, const float* dy, const float* x, int rows, int in, int out) {
  multiply_blocks(dw, in, {dy, 1, size_t(out)}, Right{x, size_t(in), false}, out, rows, in, Chain::added);
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

// A few rows, their elements of one k side by side.
struct FewRows {
  const float* p;
  size_t rows;
  float operator()(int r, int k) const { return p[k * rows + r]; }
};

// A few rows read the weights once, as they come: bound by memory.
template <class R>
static void multiply_few_rows(float* y, const float* x, R strip_at, int rows, int in, int out) {
  float* turned = thread_workspace(3, size_t(rows) * in + kWidth);
  if (rows > 1) pack_transposed(turned, x, in, in, rows, rows);
  FewRows left{rows > 1 ? turned : x, size_t(rows)};
  parallel_for(
      (out + kTileColumns - 1) / kTileColumns, worth_threads(int64_t(rows) * in * out / 8), [&](int64_t strip) {
        int column = int(strip) * kTileColumns, columns = out - column < kTileColumns ? out - column : kTileColumns;
        tile_of_rows<kTileRows>(rows, y + column, out, left, strip_at(column), in, columns, Chain::anew);
      });
}

void matmul_packed(float* y, const float* x, const void* packed, int rows, int in, int out, bool is_bf16) {
  Left left{x, size_t(in), 1};
  auto floats = static_cast<const float*>(packed);
  auto halves = static_cast<const uint16_t*>(packed);
  if (rows > kTileRows && is_bf16)
    return multiply_blocks(y, out, left, Bf16Right{halves, in}, rows, in, out, Chain::anew);
  if (rows > kTileRows) return multiply_blocks(y, out, left, PackedRight{floats, in}, rows, in, out, Chain::anew);
  if (is_bf16)
    multiply_few_rows(
        y, x,
        [&](int c) {
          return Bf16Strip{halves + size_t(c) * in, kTileColumns};
        },
        rows, in, out);
  else
    multiply_few_rows(
        y, x,
        [&](int c) {
          return Strip{floats + size_t(c) * in, kTileColumns};
        },
        rows, in, out);
}

}  // namespace ISA
