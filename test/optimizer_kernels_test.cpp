// The optimizers' operations: every table against the definition, bit for bit.
#include "bits.h"
#include "reference.h"

namespace {

constexpr int64_t kCounts[] = {1, 15, 16, 17, 100, 4095, 4096, 4097, 20011};

TEST(SumSquares, AddsBlocksOf4096InOrder) {
  for (int64_t n : kCounts)
    for (const auto& x : {noise(n, 1), awkward(n, 2)}) {
      SCOPED_TRACE(n);
      std::vector<double> want = {reference::sum_squares(x.data(), n)};
      with_every_table([&](const Kernels& kernels) {
        std::vector<double> got(1);
        kernels.sum_squares(got.data(), x.data(), n);
        EXPECT_SAME_BITS(got, want);
      });
    }
}

TEST(SumSquares, OfNothingIsZero) {
  with_every_table([&](const Kernels& kernels) {
    double sum = 1;
    kernels.sum_squares(&sum, nullptr, 0);
    EXPECT_EQ(sum, 0.0);
  });
}

void compare_adamw(int64_t n, const std::vector<float>& p_start, const std::vector<float>& m_start,
                   const std::vector<float>& v_start, const std::vector<float>& g) {
  AdamStep step = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.7f, 1 / (1 - 0.9f), 1 / (1 - 0.95f)};
  auto p = p_start, m = m_start, v = v_start;
  reference::adamw<float>(
      p.data(), m.data(), v.data(), g.data(), n,
      {step.lr, step.beta1, step.beta2, step.eps, step.decay, step.grad_scale, step.correction1, step.correction2});
  with_every_table([&](const Kernels& kernels) {
    SCOPED_TRACE(n);
    Guarded<float> got_p(p_start), got_m(m_start), got_v(v_start);
    kernels.adamw(got_p.data(), got_m.data(), got_v.data(), g.data(), n, step);
    EXPECT_SAME_BITS(got_p, p);
    EXPECT_SAME_BITS(got_m, m);
    EXPECT_SAME_BITS(got_v, v);
  });
}

std::vector<float> magnitudes(std::vector<float> v) {
  for (float& x : v) x = std::abs(x);
  return v;
}

TEST(Adamw, HasTheBitsOfItsDefinition) {
  for (int64_t n : kCounts) compare_adamw(n, noise(n, 1), noise(n, 2, 0.1), magnitudes(noise(n, 3, 0.01)), noise(n, 4));
}

TEST(Adamw, HandlesDenormalsZerosAndExtremes) {
  compare_adamw(333, awkward(333, 1), awkward(333, 2), magnitudes(awkward(333, 3)), awkward(333, 4));
  compare_adamw(20, noise(20, 1), std::vector<float>(20), std::vector<float>(20), std::vector<float>(20));
}

TEST(Adamw, FirstStepMovesByTheLearningRate) {
  std::vector<double> p = {1, 1}, m(2), v(2), g = {3, -0.2};
  reference::adamw<double>(p.data(), m.data(), v.data(), g.data(), 2, {0.1, 0.9, 0.95, 0, 0, 1, 10, 20});
  EXPECT_NEAR(p[0], 0.9, 1e-12);
  EXPECT_NEAR(p[1], 1.1, 1e-12);
}

TEST(Blend, HasTheBitsOfItsDefinition) {
  for (int64_t n : kCounts)
    for (const auto& x : {noise(n, 1), awkward(n, 2)}) {
      auto start = awkward(n, 3), y = start;
      reference::blend(y.data(), x.data(), 0.05f, 0.95f, n);
      with_every_table([&](const Kernels& kernels) {
        Guarded<float> got(start);
        kernels.blend(got.data(), x.data(), 0.05f, 0.95f, n);
        EXPECT_SAME_BITS(got, y);
      });
    }
}

TEST(RowNormalize, HasTheBitsOfItsDefinition) {
  for (int width : {1, 2, 15, 16, 17, 33, 100})
    for (int rows : {1, 5, 13, 300})
      for (const auto& start : {noise(size_t(rows) * width, 1), awkward(size_t(rows) * width, 2)}) {
        auto x = start, v_start = magnitudes(noise(rows, 3)), v = v_start;
        reference::row_normalize(x.data(), v.data(), 0.95f, 1e-8f, rows, width);
        with_every_table([&](const Kernels& kernels) {
          Guarded<float> got(start), got_v(v_start);
          kernels.row_normalize(got.data(), got_v.data(), 0.95f, 1e-8f, rows, width);
          EXPECT_SAME_BITS(got, x);
          EXPECT_SAME_BITS(got_v, v);
        });
      }
}

}  // namespace
