// bfloat16 for the emulator, with the names of CUDA's header: the upper half of a float. Conversions round to nearest,
// ties to even. There is no arithmetic, and nothing is converted unasked: kernels compute in float.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "intrinsics.h"

struct __nv_bfloat16 {
  uint16_t __x;

  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float x);
  explicit operator float() const { return std::bit_cast<float>(uint32_t(__x) << 16); }
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return std::bit_cast<__nv_bfloat16>(bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.__x; }

// All NaNs become 0x7fff, as on the device.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return __ushort_as_bfloat16(0x7fff);
  return __ushort_as_bfloat16(uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return float(x); }
inline __nv_bfloat16::__nv_bfloat16(float x) : __nv_bfloat16(__float2bfloat16_rn(x)) {}

inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return __floats2bfloat162_rn(x, x); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {float(v.x), float(v.y)}; }
inline float __low2float(__nv_bfloat162 v) { return float(v.x); }
inline float __high2float(__nv_bfloat162 v) { return float(v.y); }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
