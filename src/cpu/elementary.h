// exp and the sigmoid, ours: from fma, multiplication and integer operations alone, so that every machine computes the
// same bits.
#pragma once
#include "lanes.h"

namespace ISA {

// exp(x) = 2ⁿ · e^r, n = round(x / ln 2), |r| ≤ ln 2 / 2; e^r by a polynomial of degree 7 (coefficients of Cephes'
// expf; error below 1 unit in the last place). 2ⁿ is applied in two factors, so that results below 2⁻¹²⁶ are rounded
// once and above 2¹²⁸ are infinite.
inline Vector exp(Vector x) {
  x = x > 89.0f ? splat_vector(89.0f) : x;  // a NaN passes both
  x = x < -104.0f ? splat_vector(-104.0f) : x;
  const Vector to_integer =
      splat_vector(12582912.0f);  // 1.5 · 2²³: adding it leaves the nearest integer in the low bits
  Vector shifted = fma(x, splat_vector(1.44269504f), to_integer), n = shifted - to_integer;
  Vector r = fma(n, splat_vector(-0.693359375f), x);
  r = fma(n, splat_vector(2.12194440e-4f), r);
  Vector p = splat_vector(1.9875691500e-4f);
  p = fma(p, r, splat_vector(1.3981999507e-3f));
  p = fma(p, r, splat_vector(8.3334519073e-3f));
  p = fma(p, r, splat_vector(4.1665795894e-2f));
  p = fma(p, r, splat_vector(1.6666665459e-1f));
  p = fma(p, r, splat_vector(5.0000001201e-1f));
  p = fma(p, r * r, r);
  p = p + 1.0f;
  Ints power = (Ints)shifted - (Ints)to_integer, half = power >> 1;
  return p * (Vector)((half + 127) << 23) * (Vector)((power - half + 127) << 23);
}

inline Lanes exp(Lanes x) {
  return each_part([&](int i) { return exp(x.part[i]); });
}
inline float exp(float x) { return exp(splat_vector(x))[0]; }

inline Lanes sigmoid(Lanes x) {
  return each_part([&](int i) { return 1.0f / (1.0f + exp(-x.part[i])); });
}
inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

}  // namespace ISA
