// The micro-kernel under every matrix product and under attention: a small tile of outputs kept in registers while the
// inner index runs. It vectorises across outputs, so each output is one fma chain in increasing k, whatever the tile's
// size: a chain may stop, be stored and continue. The blocking is BLIS's (Van Zee & van de Geijn 2015).
//
// Sums over rows, which are long, are chains of kSummedRows at most, added one after the other (kernels.h): then c is
// added to after a chain from 0.
#pragma once
#include <utility>

#include "lanes.h"

namespace ISA {

// A tile fills the register file: 12 × 2 accumulators of AVX-512's 32 registers, 6 × 2 of AVX2's 16, 4 × 2 elsewhere.
constexpr int kTileRows = kWidth == 16 ? 12 : kWidth == 8 ? 6 : 4;
constexpr int kTileColumns = 2 * kWidth;

// A left factor, rows × inner index, where it lies: plain or transposed matrices.
struct Left {
  const float* p;
  size_t row, step;
  float operator()(int r, int k) const { return p[r * row + k * step]; }
};

// A panel of kTileRows rows of a left factor, packed: the rows' elements of one k side by side.
struct Panel {
  const float* p;
  float operator()(int r, int k) const { return p[k * kTileRows + r]; }
};

// The right factor's packed rows, `step` floats apart; vector v of row k.
struct Strip {
  const float* p;
  size_t step;
  Vector operator()(int k, int v) const {
    Vector right;
    std::memcpy(&right, p + k * step + v * kWidth, sizeof(Vector));
    return right;
  }
};

// The same in bfloat16.
struct Bf16Strip {
  const uint16_t* p;
  size_t step;
  Vector operator()(int k, int v) const { return load_bf16(p + k * step + v * kWidth); }
};

// What a product does with the c that is there: nothing; its chains go on from it; chains from 0 are added to it.
enum class Chain { anew, continued, added };

// c[r][j] (rows × columns, columns ≤ kTileColumns) from the chain over k < depth of a(r, k) · b(k)[j]. b must be
// readable for kVectors whole registers a row. Columns past `columns` are computed and dropped.
template <int kRows, int kVectors, class L, class R>
inline void tile(float* c, size_t c_row, L a, R b, int depth, int columns, Chain chain) {
  constexpr int kWide = kVectors * kWidth;
  float edge[kRows * kWide];
  float* from = c;
  size_t from_row = c_row;
  if (columns < kWide) {
    from = edge, from_row = kWide;
    if (chain != Chain::anew)
      for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < kWide; ++j) edge[r * kWide + j] = j < columns ? c[r * c_row + j] : 0.0f;
  }
  for (int r = 0; r < kRows; ++r)  // the next tile of these rows
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + r * c_row + kWide + v * kWidth, 1);
  Vector acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = Vector{};
      if (chain == Chain::continued) std::memcpy(&acc[r][v], from + r * from_row + v * kWidth, sizeof(Vector));
    }
  for (int k = 0; k < depth; ++k) {
    Vector right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = b(k, v);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      Vector left = splat_vector(a(r, k));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(left, right[v], acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* to = from + r * from_row + v * kWidth;
      if (chain == Chain::added) {
        Vector there;
        std::memcpy(&there, to, sizeof there);
        acc[r][v] = there + acc[r][v];
      }
      std::memcpy(to, &acc[r][v], sizeof(Vector));
    }
  if (columns < kWide)
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < columns; ++j) c[r * c_row + j] = edge[r * kWide + j];
}

// Up to kRows rows.
template <int kRows, class L, class R>
inline void tile_of_rows(int rows, float* c, size_t c_row, L a, R b, int depth, int columns, Chain chain) {
  if constexpr (kRows > 0) {
    if (rows < kRows) return tile_of_rows<kRows - 1>(rows, c, c_row, a, b, depth, columns, chain);
    if (columns > kWidth)
      tile<kRows, 2>(c, c_row, a, b, depth, columns, chain);
    else
      tile<kRows, 1>(c, c_row, a, b, depth, columns, chain);
  }
}

// One strip of columns (≤ kTileColumns), any number of rows.
template <class R>
inline void multiply_strip(float* c, size_t c_row, Left a, R b, int rows, int depth, int columns, Chain chain) {
  for (; rows > 0; rows -= kTileRows, c += kTileRows * c_row, a.p += kTileRows * a.row)
    tile_of_rows<kTileRows>(rows < kTileRows ? rows : kTileRows, c, c_row, a, b, depth, columns, chain);
}

constexpr int round_up(int n, int to) { return (n + to - 1) / to * to; }

// All columns; b's rows must be readable up to a multiple of kWidth columns.
inline void multiply(float* c, size_t c_row, Left a, const float* b, size_t b_step, int rows, int depth, int columns,
                     Chain chain) {
  for (int j = 0; j < columns; j += kTileColumns)
    multiply_strip(c + j, c_row, a, Strip{b + j, b_step}, rows, depth,
                   columns - j < kTileColumns ? columns - j : kTileColumns, chain);
}

// One stage of a transposition in registers: exchanges a bit of the row's index with the same bit of the column's.
template <int kBit, int... kLane>
inline void exchange(Vector* v, std::integer_sequence<int, kLane...>) {
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if (i & kBit) continue;
    Vector x = v[i], y = v[i + kBit];
    v[i] = __builtin_shufflevector(x, y, (kLane & kBit ? kWidth + kLane - kBit : kLane)...);
    v[i + kBit] = __builtin_shufflevector(x, y, (kLane & kBit ? kWidth + kLane : kLane + kBit)...);
  }
}

template <int kBit = kWidth / 2>
inline void transpose(Vector* v) {
  exchange<kBit>(v, std::make_integer_sequence<int, kWidth>());
  if constexpr (kBit > 1) transpose<kBit / 2>(v);
}

// out[k · wide + j] = in[j · row + k] for kWidth values of k and j < columns ≤ kWidth, and 0 for the other j < kWidth;
// k in increasing order, so that where wide < kWidth, what is written past one k's `wide` floats is overwritten by the
// next.
template <class Count>
inline void pack_transposed_block(float* out, const float* in, size_t row, Count columns, int wide) {
  Vector v[kWidth];
#pragma GCC unroll 16
  for (int j = 0; j < kWidth; ++j) {
    v[j] = Vector{};
    if (j < columns) std::memcpy(&v[j], in + j * row, sizeof(Vector));
  }
  transpose(v);
#pragma GCC unroll 16
  for (int k = 0; k < kWidth; ++k) std::memcpy(out + size_t(k) * wide, &v[k], sizeof(Vector));
}

// out[k · wide + j] = in[j · row + k]: `columns` rows of a matrix side by side, zeros up to `wide`. Writes up to kWidth
// floats behind the end where wide is not a multiple of kWidth. One vector's rows at a time: more streams than that
// compete for the same cache lines.
inline void pack_transposed(float* out, const float* in, size_t row, int depth, int columns, int wide) {
  int whole = depth / kWidth * kWidth;
  for (int j = 0; j < wide; j += kWidth) {
    int count = columns - j < kWidth ? columns - j : kWidth;
    for (int k = 0; k < whole; k += kWidth) {
      float* to = out + size_t(k) * wide + j;
      const float* from = in + j * row + k;
      if (count == kWidth)
        pack_transposed_block(to, from, row, std::integral_constant<int, kWidth>(), wide);
      else
        pack_transposed_block(to, from, row, count, wide);
    }
  }
  for (int k = whole; k < depth; ++k)
    for (int j = 0; j < wide; ++j) out[size_t(k) * wide + j] = j < columns ? in[j * row + k] : 0;
}

// out[k · wide + j] = in[k · row + j], zeros up to `wide`.
inline void pack_rows(float* out, const float* in, size_t row, int depth, int columns, int wide) {
  for (int k = 0; k < depth; ++k) {
    float* to = out + size_t(k) * wide;
    std::memcpy(to, in + k * row, columns * sizeof(float));
    for (int j = columns; j < wide; ++j) to[j] = 0;
  }
}

}  // namespace ISA
