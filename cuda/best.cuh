// The greatest number of a row of logits and the first place that has it, by a block: what both the loss and sampling want.
#pragma once
#include <climits>
#include <cmath>

#include "reduce.cuh"

// The first element of a row.
__host__ __device__ inline int64_t row_at(int64_t row, int vocab) { return row * vocab; }

struct Best {
  float value = -INFINITY;
  int index = INT_MAX;  // none yet
  // The next number, at a greater index than those before. NaN is passed over.
  __device__ void see(float x, int i) {
    if (x > value) value = x, index = i;
  }
};

struct BestScratch {
  Shared<float> value[kWarp];
  Shared<int> index[kWarp];
};

// Over the block's threads (reduce.cuh). Index 0 where nothing is greater than −∞.
__device__ inline Best block_best(Best mine, BestScratch& scratch) {
  Best all;
  all.value = block_max(mine.value, scratch.value);
  all.index = block_reduce(mine.value == all.value ? mine.index : INT_MAX, scratch.index,
                           [](int a, int b) { return a < b ? a : b; });
  if (all.index == INT_MAX) all.index = 0;
  return all;
}
