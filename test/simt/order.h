// A small random generator (splitmix64): the order in which threads and blocks run.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace simt {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  unsigned below(unsigned n) { return unsigned((next() >> 32) * n >> 32); }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(unsigned(i))]);
  }

 private:
  uint64_t next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }
  uint64_t state_;
};

}  // namespace simt
