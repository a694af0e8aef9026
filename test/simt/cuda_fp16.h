// IEEE half precision for the emulator, with the names of CUDA's header: a sign, 5 bits of exponent, 10 of mantissa.
// Conversions round to nearest, ties to even. There is no arithmetic, and nothing is converted unasked: kernels compute
// in float.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "intrinsics.h"

struct __half {
  uint16_t __x;

  __half() = default;
  explicit __half(float x);
  explicit operator float() const;
};
struct alignas(4) __half2 {
  __half x, y;
};
using half = __half;
using half2 = __half2;

inline __half __ushort_as_half(unsigned short bits) { return std::bit_cast<__half>(bits); }
inline unsigned short __half_as_ushort(__half x) { return x.__x; }

// All NaNs become 0x7fff, as on the device.
inline __half __float2half_rn(float x) {
  constexpr uint32_t kInfinite = 0x7f800000, kTooLarge = 0x477ff000, kSmallestNormal = 0x38800000, kBias = 112u << 23;
  uint32_t bits = std::bit_cast<uint32_t>(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000, half;
  if (size > kInfinite) return __ushort_as_half(0x7fff);
  if (size >= kTooLarge)  // halfway between the largest half and the next power of two
    half = 0x7c00;
  else if (size >= kSmallestNormal)
    half = (size - kBias + 0xfff + (size >> 13 & 1)) >> 13;
  else  // a multiple of 2⁻²⁴
    half = uint32_t(std::nearbyint(std::ldexp(std::bit_cast<float>(size), 24)));
  return __ushort_as_half(uint16_t(sign | half));
}
inline __half __float2half(float x) { return __float2half_rn(x); }
inline float __half2float(__half x) {
  uint32_t sign = uint32_t(x.__x & 0x8000) << 16, exponent = x.__x >> 10 & 31, mantissa = x.__x & 0x3ff;
  if (exponent == 0) return std::copysign(std::ldexp(float(mantissa), -24), std::bit_cast<float>(sign));
  uint32_t rebiased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | rebiased << 23 | mantissa << 13);
}
inline __half::__half(float x) : __half(__float2half_rn(x)) {}
inline __half::operator float() const { return __half2float(*this); }

inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
inline __half2 __float2half2_rn(float x) { return __floats2half2_rn(x, x); }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline float __low2float(__half2 v) { return float(v.x); }
inline float __high2float(__half2 v) { return float(v.y); }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
