// The norm of one row, shared by rmsnorm and by the norm of queries and keys.
#pragma once
#include "lanes.h"

namespace ISA {

inline float reciprocal_rms(const float* x, int width, float eps) {
  Lanes square = {};
  each_piece(width, [&](int i, int n) {
    Lanes v = load(x + i, n);
    square = fma(v, v, square);
  });
  return 1.0f / __builtin_sqrtf(sum(square) / float(width) + eps);
}

inline void normalize_row(float* y, const float* x, const float* gain, float rrms, int width) {
  each_piece(width, [&](int i, int n) { store(y + i, load(gain + i, n) * (load(x + i, n) * splat(rrms)), n); });
}

// dx += the gradient that reaches x through the norm.
inline void normalize_row_backward(float* dx, const float* dy, const float* x, const float* gain, float rrms,
                                   int width) {
  Lanes dot = {};
  each_piece(width, [&](int i, int n) { dot = fma(load(gain + i, n) * load(dy + i, n), load(x + i, n), dot); });
  Lanes shrink = splat(-sum(dot) * rrms * rrms * rrms / float(width));
  each_piece(width, [&](int i, int n) {
    Lanes direct = load(gain + i, n) * load(dy + i, n) * splat(rrms);
    store(dx + i, load(dx + i, n) + fma(load(x + i, n), shrink, direct), n);
  });
}

}  // namespace ISA
