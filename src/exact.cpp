// Methods: argument reduction with constants split into two parts (Cody & Waite), then Taylor or atanh series, long
// enough for double.
#include "exact.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "random.h"

namespace {

constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kHalfPiHigh = 0x1.921fb54400000p+0, kHalfPiMiddle = 0x1.0b4611a600000p-34,
                 kHalfPiLow = 0x1.3198a2e037073p-69;
constexpr double kRoundToInteger = 0x1.8p52;  // adding it leaves the nearest integer

double from_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

double nearest_integer(double x) { return (x + kRoundToInteger) - kRoundToInteger; }

// Σ_{n = last, last − 2, …} (−1)^(n/2) r^n / n!, by Horner: sine's terms for odd `last`, cosine's for even.
double alternating_series(double r, int last) {
  double square = r * r, sum = 1;
  for (int n = last; n >= 2; n -= 2) sum = 1 - square / double(n * (n - 1)) * sum;
  return last % 2 ? r * sum : sum;
}

// sin(x + quarter_turns · π/2).
double sine(double x, int quarter_turns) {
  double n = nearest_integer(x * 0x1.45f306dc9c883p-1);  // 2/π
  double r = ((x - n * kHalfPiHigh) - n * kHalfPiMiddle) - n * kHalfPiLow;
  int quadrant = int(int64_t(n) + quarter_turns) & 3;
  double value = quadrant % 2 ? alternating_series(r, 20) : alternating_series(r, 21);
  return quadrant < 2 ? value : -value;
}

}  // namespace

double exact_exp(double x) {
  if (x != x) return x;
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -746) return 0;
  double n = nearest_integer(x * 0x1.71547652b82fep+0), r = (x - n * kLn2High) - n * kLn2Low, sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + r / k * sum;
  int64_t half = int64_t(n) / 2, rest = int64_t(n) - half;
  return sum * from_bits(uint64_t(half + 1023) << 52) * from_bits(uint64_t(rest + 1023) << 52);
}

double exact_log(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == std::numeric_limits<double>::infinity()) return x;
  int exponent = 0;
  if (x < 0x1p-1022) x *= 0x1p54, exponent = -54;
  uint64_t bits = bits_of(x);
  exponent += int(bits >> 52) - 1023;
  double m = from_bits((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);  // 1 ≤ m < 2
  if (m > 1.4142135623730951) m *= 0.5, ++exponent;
  double s = (m - 1) / (m + 1), square = s * s, sum = 0;  // log m = 2 atanh s, |s| < 0.172
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return exponent * kLn2High + (2 * s + (2 * s * sum + exponent * kLn2Low));
}

double exact_sin(double x) { return sine(x, 0); }
double exact_cos(double x) { return sine(x, 1); }

void rope_table(float* table, int positions, int head_dim, float theta) {
  int half = head_dim / 2;
  double log_theta = exact_log(double(theta));
  for (int i = 0; i < half; ++i) {
    double frequency = exact_exp(-2.0 * i / head_dim * log_theta);
    for (int p = 0; p < positions; ++p) {
      double angle = p * frequency;
      table[size_t(p) * head_dim + i] = float(exact_cos(angle));
      table[size_t(p) * head_dim + half + i] = float(exact_sin(angle));
    }
  }
}

double Random::normal() {
  double u = uniform(), v = uniform();
  return std::sqrt(-2 * exact_log(1 - u)) * exact_cos(6.283185307179586 * v);
}
