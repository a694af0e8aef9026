// Rows named by index arrays, for the tests of what gathers and scatters; and arrays of more than 2³¹ elements.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "device.h"

// `n` different row numbers below `limit`, in no order.
inline std::vector<int> different_rows(int n, int limit, unsigned seed) {
  std::vector<int> all(limit);
  for (int i = 0; i < limit; ++i) all[i] = i;
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  return {all.begin(), all.begin() + n};
}

// The beginning of an array whose element number `ahead` is at p, for kernels which touch only what lies from there on:
// so that indices beyond 32 bits are tested in a small memory.
inline float* beginning(const Kernels& run, float* p, int64_t ahead) {
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(p) - uintptr_t(ahead) * uintptr_t(run.element_bytes));
}
constexpr int kFarRow = 70'000, kFarWidth = 65'536;  // the row begins at element 4.6 · 10⁹

// What an operation overwrites before it has, so that what it leaves out shows.
inline std::vector<float> junk(size_t n) { return std::vector<float>(n, -77.0f); }

// |terms| of results that are one term.
inline std::vector<double> magnitudes(const std::vector<float>& x) {
  std::vector<double> size(x.begin(), x.end());
  for (double& s : size) s = std::abs(s);
  return size;
}
