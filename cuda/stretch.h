// Which elements of rows × width a block takes: a stretch of one row, at most `length` elements. A row's stretches are
// numbered before the next row's. What is not made of rows is one row.
#pragma once
#include <cstdint>

#include "host_device.h"

struct Stretch {
  int64_t row, first, count;
};

FULLBAND_HOST_DEVICE constexpr int64_t stretches_in(int64_t width, int length) { return (width + length - 1) / length; }

FULLBAND_HOST_DEVICE constexpr Stretch stretch_of(unsigned block, int64_t width, int length) {
  unsigned stretches = unsigned(stretches_in(width, length));  // no more than there are blocks
  int64_t first = int64_t(block % stretches) * length, left = width - first;
  return {int64_t(block / stretches), first, left < length ? left : length};
}
