// What the operations' tests share: comparison as integers, inputs, buffers with guarded edges, and the loop over every
// table and number of threads.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels.h"

// --- Comparison ----------------------------------------------------------------------------------------------------

// The bits of a number; all NaNs count as one, since the instruction sets do not agree on a NaN's sign and payload.
inline uint64_t bits_of(float x) { return std::isnan(x) ? 0x7fc00000u : std::bit_cast<uint32_t>(x); }
inline uint64_t bits_of(double x) { return std::isnan(x) ? 0x7ff8000000000000u : std::bit_cast<uint64_t>(x); }
inline uint64_t bits_of(int x) { return uint32_t(x); }

template <class A, class B>
testing::AssertionResult same_bits(const char* got_name, const char* want_name, const A& got, const B& want) {
  if (got.size() != want.size())
    return testing::AssertionFailure() << got_name << " has " << got.size() << " values, " << want_name << " "
                                       << want.size();
  size_t different = 0, first = 0;
  for (size_t i = got.size(); i-- > 0;)
    if (bits_of(got[i]) != bits_of(want[i])) ++different, first = i;
  if (!different) return testing::AssertionSuccess();
  return testing::AssertionFailure() << got_name << "[" << first << "] is " << testing::PrintToString(got[first])
                                     << std::hex << " (0x" << bits_of(got[first]) << "), " << want_name << " says "
                                     << testing::PrintToString(want[first]) << " (0x" << bits_of(want[first]) << ")"
                                     << std::dec << "; " << different << " of " << got.size() << " differ";
}
#define EXPECT_SAME_BITS(got, want) EXPECT_PRED_FORMAT2(same_bits, got, want)
#define ASSERT_SAME_BITS(got, want) ASSERT_PRED_FORMAT2(same_bits, got, want)

// --- Inputs --------------------------------------------------------------------------------------------------------

template <class T = float>
std::vector<T> noise(size_t n, unsigned seed, double size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> v(n);
  for (T& x : v) x = T(size * normal(random));
  return v;
}

// Noise in which every third value is one that arithmetic likes to get wrong: zeros of both signs, denormals, tiny and
// large.
inline std::vector<float> awkward(size_t n, unsigned seed) {
  constexpr float values[] = {0.0f, -0.0f, 1e-40f, -3e-42f, 1.4e-45f, -1.17549435e-38f, 1e-20f, -3e15f, 80.0f, -95.0f};
  std::vector<float> v = noise(n, seed);
  std::mt19937 random(seed);
  for (float& x : v)
    if (random() % 3 == 0) x = values[random() % std::size(values)];
  return v;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// --- Outputs -------------------------------------------------------------------------------------------------------

// A buffer whose edges are watched: a kernel that writes beside its output is caught when the buffer goes.
template <class T>
class Guarded {
 public:
  Guarded(size_t n, T value) : Guarded(std::vector<T>(n, value)) {}
  explicit Guarded(const std::vector<T>& content) : n_(content.size()), all_(content.size() + 2 * kEdge, kCanary) {
    std::copy(content.begin(), content.end(), all_.begin() + kEdge);
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() {
    for (size_t i = 0; i < kEdge; ++i) {
      EXPECT_EQ(all_[i], kCanary) << "written " << kEdge - i << " before the beginning";
      EXPECT_EQ(all_[kEdge + n_ + i], kCanary) << "written " << i << " behind the end of " << n_;
    }
  }
  T* data() { return all_.data() + kEdge; }
  size_t size() const { return n_; }
  const T& operator[](size_t i) const { return all_[kEdge + i]; }

 private:
  static constexpr size_t kEdge = 37;  // odd, so that outputs are not aligned
  static constexpr T kCanary = T(-12345);
  size_t n_;
  std::vector<T> all_;
};

// --- Segments ------------------------------------------------------------------------------------------------------

// A batch's rows packed end to end. Their key/value rows lie about with gaps: the own rows before the prefix, or behind
// it, or (every third, like a cache) right behind it.
struct Layout {
  std::vector<Segment> segments;
  int rows = 0, kv_rows = 1, positions = 0;

  struct Piece {
    int rows, position;
  };
  Layout(std::initializer_list<Piece> pieces) {
    for (Piece piece : pieces) {
      int kind = int(segments.size()) % 3, prefix = kv_rows, own = kv_rows + piece.position + (kind == 1 ? 2 : 0);
      if (kind == 0) own = kv_rows, prefix = kv_rows + piece.rows + 1;
      segments.push_back({rows, piece.rows, piece.position, prefix, own});
      rows += piece.rows;
      kv_rows += piece.rows + piece.position + 3;
      positions = std::max(positions, piece.position + piece.rows);
    }
  }
  int count() const { return int(segments.size()); }
};

// --- Every table, with 1, 2 and 3 threads --------------------------------------------------------------------------

inline std::vector<const Kernels*> every_table() {
  const Kernels* tables[16];
  int n = cpu_kernel_tables(tables, 16);
  EXPECT_GT(n, 0) << "no kernels were tested";
  return {tables, tables + n};
}

template <class F>
void with_every_table(F f) {
  for (const Kernels* kernels : every_table())
    for (int threads : {1, 2, 3}) {
      SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(threads) + " threads");
      set_threads(threads);
      f(*kernels);
    }
  set_threads(0);
}

// --- Gradients -----------------------------------------------------------------------------------------------------

// The number that the checks of one operation differentiate: Σ weight · y.
inline double weighted(const std::vector<double>& weight, const std::vector<double>& y) {
  double total = 0;
  for (size_t i = 0; i < y.size(); ++i) total += weight[i] * y[i];
  return total;
}

// `gradient` against central differences of objective(), which reads `variable`; at 1e-7 of the largest slope.
template <class F>
void expect_gradient(const char* name, const std::vector<double>& gradient, std::vector<double>& variable,
                     F objective) {
  ASSERT_EQ(gradient.size(), variable.size()) << name;
  constexpr double h = 1e-4;
  std::vector<double> slope(variable.size());
  double largest = 0;
  for (size_t i = 0; i < variable.size(); ++i) {
    double kept = variable[i];
    auto at = [&](double step) { return variable[i] = kept + step, objective(); };
    double near = (at(h) - at(-h)) / (2 * h), far = (at(2 * h) - at(-2 * h)) / (4 * h);
    slope[i] = (4 * near - far) / 3;  // Richardson: the h² error cancels
    variable[i] = kept;
    largest = std::max(largest, std::abs(slope[i]));
  }
  for (size_t i = 0; i < variable.size(); ++i)
    EXPECT_NEAR(gradient[i], slope[i], 1e-7 * std::max(largest, 1e-3)) << name << "[" << i << "]";
}
