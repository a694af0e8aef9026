// Random numbers by key: a number is a function of what it is for (seed, purpose, step, row, …) and of a counter, never
// of what was drawn before. So jitter, sampling, shuffling and initial weights do not depend on threads, batch
// composition or interruptions, and every device computes the same ones.
#pragma once
#include <cstdint>

#include "host_device.h"

// The finaliser of SplitMix64: a bijection that scatters neighbouring numbers (Steele, Lea, Flood 2014).
FULLBAND_HOST_DEVICE constexpr uint64_t scatter_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

enum class Purpose : uint64_t { weights = 1, jitter, prefix, passes, shuffle, sampling, corpus };

// random_key(seed, purpose, a, b, …): each part is stirred in after the last, so (1, 2) and (2, 1) differ.
constexpr uint64_t random_key(uint64_t key) { return key; }
template <class... Parts>
constexpr uint64_t random_key(uint64_t key, uint64_t part, Parts... parts) {
  return random_key(scatter_bits(key ^ scatter_bits(part)), uint64_t(parts)...);
}
template <class... Parts>
constexpr uint64_t random_key(uint64_t seed, Purpose purpose, Parts... parts) {
  return random_key(scatter_bits(seed), uint64_t(purpose), uint64_t(parts)...);
}

FULLBAND_HOST_DEVICE constexpr uint64_t random_bits(uint64_t key, uint64_t counter) {
  return scatter_bits(key + counter * 0xd1342543de82ef95u);
}
// Uniform in [0, 1) with 53 bits, and in [−1, 1) with 24 bits (exact in float).
FULLBAND_HOST_DEVICE constexpr double random_uniform(uint64_t key, uint64_t counter) {
  return double(random_bits(key, counter) >> 11) * 0x1p-53;
}
FULLBAND_HOST_DEVICE constexpr float random_symmetric(uint64_t key, uint64_t counter) {
  return float(int64_t(random_bits(key, counter) >> 40) - (1 << 23)) * 0x1p-23f;
}

// A sequence drawn from one key.
class Random {
 public:
  // From its n-th number on (a normal takes two).
  explicit Random(uint64_t key, uint64_t n = 0) : key_(key), counter_(n) {}
  uint64_t bits() { return random_bits(key_, counter_++); }
  double uniform() { return double(bits() >> 11) * 0x1p-53; }
  // A whole number in [0, n), n > 0 and below 2³².
  int below(int n) { return int((bits() >> 32) * uint64_t(n) >> 32); }
  double normal();  // mean 0, variance 1 (Box–Muller)

 private:
  uint64_t key_, counter_;
};
