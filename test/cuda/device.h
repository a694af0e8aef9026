// What the tests of the CUDA operations share: both tables, arrays in the device's memory, and comparison with the CPU's
// result. The same tests run on the emulator, and on a GPU (scripts/gpu_check.sh).
//
// A table on a GPU does not promise the CPU's bits: it adds in other orders and rounds elsewhere. What it promises is a
// distance: |got − want| ≤ tolerance · Σ|terms|, where the terms are what the result sums; for float 1e-5, for bfloat16 each
// test says which roundings it counts (one rounding is at most 2⁻⁸ of the value).
#pragma once
#include <string>
#include <vector>

#include "bits.h"
#include "devices.h"
#include "memory.h"

constexpr double kFloatTolerance = 1e-5;
constexpr double kBf16Rounding = 1.0 / 256;  // half a unit in the last of 8 bits

inline float to_bf16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

// A CUDA table beside the CPU's.
struct Device {
  const Kernels& run;
  bool bf16;

  // What the CPU gets for the same inputs: rounded as the device's elements are.
  std::vector<float> rounded(std::vector<float> x) const {
    if (bf16)
      for (float& v : x) v = to_bf16(v);
    return x;
  }
  double tolerance(double bf16_roundings) const {
    return bf16 ? bf16_roundings * kBf16Rounding + kFloatTolerance : kFloatTolerance;
  }
};

template <class F>
void with_cuda_tables(F f) {
  for (bool bf16 : {false, true}) {
    std::string why_not;
    const Kernels* table = cuda_kernels(bf16, &why_not);
    ASSERT_NE(table, nullptr) << why_not;
    SCOPED_TRACE(table->name);
    f(Device{*table, bf16});
  }
}

// Elements (acts) or floats on the device, from host values.
class OnDevice {
 public:
  enum Kind { acts, floats };
  OnDevice(const Kernels& run, const std::vector<float>& values, Kind kind)
      : run_(kind == acts ? run : *run.floats), n_(values.size()), block_(run_, floats_for(run_, n_)) {
    if (n_ == 0) return;
    Block staged(*run.floats, n_);
    run_.upload(staged.data(), values.data(), n_ * sizeof(float));
    run_.from_floats(block_.data(), staged.data(), int64_t(n_));
    if (&run_ == run_.floats) run_.upload(block_.data(), values.data(), n_ * sizeof(float));
  }
  float* data() { return block_.data(); }
  std::vector<float> values() const {
    if (n_ == 0) return {};
    OnHost host(run_, block_.data(), n_);
    return {host.data(), host.data() + n_};
  }

 private:
  const Kernels& run_;
  size_t n_;
  Block block_;
};
inline OnDevice acts(const Device& d, const std::vector<float>& values) { return {d.run, values, OnDevice::acts}; }
inline OnDevice floats(const Device& d, const std::vector<float>& values) { return {d.run, values, OnDevice::floats}; }

// Each |got − want| at most tolerance · scale, where `scale` is one number a value, or one for all.
inline testing::AssertionResult close(const std::vector<float>& got, const std::vector<float>& want,
                                      const std::vector<double>& scale, double tolerance) {
  if (got.size() != want.size()) return testing::AssertionFailure() << got.size() << " values for " << want.size();
  size_t worst = 0, outside = 0;
  double most = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    double allowed = tolerance * (scale.size() == 1 ? scale[0] : scale[i]) + 1e-30;
    double share = std::abs(double(got[i]) - double(want[i])) / allowed;
    if (bits_of(got[i]) == bits_of(want[i])) share = 0;
    if (std::isnan(share)) share = kInfinity;
    outside += share > 1;
    if (share > most) most = share, worst = i;
  }
  if (outside == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "[" << worst << "] is " << got[worst] << ", the CPU says " << want[worst]
                                     << ": " << most << " times what is allowed; " << outside << " of " << got.size()
                                     << " are outside";
}
