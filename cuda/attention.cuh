// How attention cuts its work, on the host and in the kernels alike (attention.cu).
#pragma once
#include "launch.cuh"
#include "segments.h"

namespace attention {

// A row's keys are summed in parts, which different blocks may compute: at most so many, of this size, or twice it, or
// four times …
constexpr int kParts = 32, kPartKeys = 128;

struct Keys {
  int begin, end;  // positions
};

struct Shape {
  int heads, kv_heads, head_dim, window;

  __host__ __device__ int group() const { return heads / kv_heads; }
  __host__ __device__ int fours() const { return (head_dim + 3) / 4; }
  __host__ __device__ int first(int t) const { return window > 0 && t >= window ? t - window + 1 : 0; }
  // Keys of a part of the row at position t: parts are [n · keys, (n + 1) · keys), and the row sees at most kParts of
  // them. So they depend on the position alone, and with them the order of the row's sums.
  __host__ __device__ int part_keys(int t) const {
    int64_t keys = kPartKeys, visible = int64_t(t) + 1 - first(t);
    while (visible > keys * (kParts - 1)) keys *= 2;
    return int(keys);
  }
  __host__ __device__ int parts(int t) const { return t / part_keys(t) - first(t) / part_keys(t) + 1; }
  // What the row sees of its n-th part; nothing from parts(t) on. A later row's begin and end are no smaller.
  __host__ __device__ Keys part(int t, int n) const {
    int64_t keys = part_keys(t), begin = (first(t) / keys + n) * keys;
    if (begin > t) return {t + 1, t + 1};
    return {int(max(begin, int64_t(first(t)))), int(min(begin + keys, int64_t(t) + 1))};
  }
};

// Element 0 of a head's row in q, y, k or v.
__host__ __device__ inline int64_t head_at(int64_t row, int heads, int head, int head_dim) {
  return (row * heads + head) * head_dim;
}

}  // namespace attention
