// bfloat16 for the emulator: the upper half of a float, rounded to nearest, ties to even.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }
inline __nv_bfloat16 __float2bfloat16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return {0x7fff};
  return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
