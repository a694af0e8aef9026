// The micro-kernel under every matrix product and under attention: a small tile of outputs kept in registers while the
// inner index runs. It vectorises across outputs, so each output is one fma chain in increasing k, whatever the tile's
// size: a chain may stop, be stored and continue. The blocking is BLIS's (Van Zee & van de Geijn 2015), with the
// inputs' rows used where they lie.
#pragma once
#include "lanes.h"

namespace ISA {

// A tile fills the register file: 12 × 2 accumulators of AVX-512's 32 registers, 6 × 2 of AVX2's 16, 4 × 2 elsewhere.
constexpr int kTileRows = kWidth == 16 ? 12 : kWidth == 8 ? 6 : 4;
constexpr int kTileColumns = 2 * kWidth;

// A left factor's element (row r, inner index k) is at p[r · row + k · step]: plain or transposed matrices.
struct Left {
  const float* p;
  size_t row, step;
};

// c[r][j] (rows × columns, columns ≤ kTileColumns) = or continues the chain over k < depth of a(r, k) · b[k · b_step +
// j]. b must be readable for kVectors whole registers a row. Columns past `columns` are computed and dropped.
template <int kRows, int kVectors>
inline void tile(float* c, size_t c_row, Left a, const float* b, size_t b_step, int depth, int columns, bool from_c) {
  constexpr int kWide = kVectors * kWidth;
  float edge[kRows * kWide];
  float* from = c;
  size_t from_row = c_row;
  if (columns < kWide) {
    from = edge, from_row = kWide;
    if (from_c)
      for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < kWide; ++j) edge[r * kWide + j] = j < columns ? c[r * c_row + j] : 0.0f;
  }
  Vector acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = Vector{};
      if (from_c) std::memcpy(&acc[r][v], from + r * from_row + v * kWidth, sizeof(Vector));
    }
  for (int k = 0; k < depth; ++k) {
    Vector right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) std::memcpy(&right[v], b + k * b_step + v * kWidth, sizeof(Vector));
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      Vector left = splat_vector(a.p[r * a.row + k * a.step]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(left, right[v], acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) std::memcpy(from + r * from_row + v * kWidth, &acc[r][v], sizeof(Vector));
  if (columns < kWide)
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < columns; ++j) c[r * c_row + j] = edge[r * kWide + j];
}

// The remainder: fewer than kTileRows rows.
template <int kRows, int kVectors>
inline void tile_of_rows(int rows, float* c, size_t c_row, Left a, const float* b, size_t b_step, int depth,
                         int columns, bool from_c) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return tile<kRows, kVectors>(c, c_row, a, b, b_step, depth, columns, from_c);
    tile_of_rows<kRows - 1, kVectors>(rows, c, c_row, a, b, b_step, depth, columns, from_c);
  }
}

// One strip of columns (≤ kTileColumns), any number of rows.
inline void multiply_strip(float* c, size_t c_row, Left a, const float* b, size_t b_step, int rows, int depth,
                           int columns, bool from_c) {
  bool wide = columns > kWidth;
  for (; rows >= kTileRows; rows -= kTileRows, c += kTileRows * c_row, a.p += kTileRows * a.row) {
    if (wide)
      tile<kTileRows, 2>(c, c_row, a, b, b_step, depth, columns, from_c);
    else
      tile<kTileRows, 1>(c, c_row, a, b, b_step, depth, columns, from_c);
  }
  if (rows > 0 && wide) tile_of_rows<kTileRows - 1, 2>(rows, c, c_row, a, b, b_step, depth, columns, from_c);
  if (rows > 0 && !wide) tile_of_rows<kTileRows - 1, 1>(rows, c, c_row, a, b, b_step, depth, columns, from_c);
}

constexpr int round_up(int n, int to) { return (n + to - 1) / to * to; }

// All columns; b's rows must be readable up to a multiple of kWidth columns.
inline void multiply(float* c, size_t c_row, Left a, const float* b, size_t b_step, int rows, int depth, int columns,
                     bool from_c) {
  for (int j = 0; j < columns; j += kTileColumns)
    multiply_strip(c + j, c_row, a, b + j, b_step, rows, depth, columns - j < kTileColumns ? columns - j : kTileColumns,
                   from_c);
}

// out[k · wide + j] = in[j · row + k]: `columns` rows of a matrix side by side, zeros up to `wide`.
inline void pack_transposed(float* out, const float* in, size_t row, int depth, int columns, int wide) {
  constexpr int kBlock = 16;  // a line of each input row at a time
  for (int k0 = 0; k0 < depth; k0 += kBlock) {
    int end = k0 + kBlock < depth ? k0 + kBlock : depth;
    for (int j = 0; j < columns; ++j)
      for (int k = k0; k < end; ++k) out[size_t(k) * wide + j] = in[j * row + k];
    for (int j = columns; j < wide; ++j)
      for (int k = k0; k < end; ++k) out[size_t(k) * wide + j] = 0;
  }
}

// out[k · wide + j] = in[k · row + j], zeros up to `wide`.
inline void pack_rows(float* out, const float* in, size_t row, int depth, int columns, int wide) {
  for (int k = 0; k < depth; ++k)
    for (int j = 0; j < wide; ++j) out[size_t(k) * wide + j] = j < columns ? in[k * row + j] : 0;
}

}  // namespace ISA
