// Sums over rows in a fixed order, without atomics: each block sums a slab of rows into a row of partial sums, and a second
// kernel adds those in order.
#pragma once
#include "device.cuh"

struct Slabs {
  int rows;  // of a slab; the last may have fewer
  int count;
  explicit Slabs(int all_rows) : rows(all_rows <= 32 * 256 ? 32 : int(ceil_div(all_rows, 256))) {
    count = int(ceil_div(all_rows, rows));
  }
};

// total[i] += Σ over slabs of partial[slab][i]; partial is slabs × width
void add_slabs(float* total, const float* partial, int slabs, int width);
