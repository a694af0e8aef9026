// The optimizers' operations on the device, in the table of floats, against the CPU's.
#include "indexed.h"

namespace {

constexpr int64_t kCounts[] = {1, 7, 16, 511, 513, 4096, 4097, 20011};

template <class F>
void with_cuda_floats(F f) {
  with_cuda_tables([&](const Device& d) {
    if (!d.bf16) f(d);
  });
}

double sum_squares_on(const Device& d, float* x, int64_t n) {
  Block sum_on(d.run, 2);
  double sum = 0;
  d.run.sum_squares(reinterpret_cast<double*>(sum_on.data()), x, n);
  d.run.download(&sum, sum_on.data(), sizeof sum);
  return sum;
}

TEST(CudaSumSquares, IsTheCpus) {
  with_cuda_floats([](const Device& d) {
    for (int64_t n : kCounts) {
      auto x = noise(n, 1);
      OnDevice x_on = floats(d, x);
      double want = 0;
      cpu_kernels().sum_squares(&want, x.data(), n);
      EXPECT_NEAR(sum_squares_on(d, x_on.data(), n), want, kFloatTolerance * want) << n;
      EXPECT_EQ(sum_squares_on(d, x_on.data(), n), sum_squares_on(d, x_on.data(), n)) << n;
    }
  });
}

TEST(CudaSumSquares, BeginsAnywhere) {
  with_cuda_floats([](const Device& d) {
    auto x = noise(5000, 1);
    OnDevice x_on = floats(d, x);
    double want = 0;
    cpu_kernels().sum_squares(&want, x.data() + 3, 4990);
    EXPECT_NEAR(sum_squares_on(d, x_on.data() + 3, 4990), want, kFloatTolerance * want);
  });
}

TEST(CudaSumSquares, AddsMoreBlocksThanABlockHasThreads) {
  with_cuda_floats([](const Device& d) {
    int64_t n = 4096 * 1030 + 5;
    OnDevice x_on = floats(d, std::vector<float>(n, 2.0f));
    EXPECT_EQ(sum_squares_on(d, x_on.data(), n), 4.0 * double(n));
  });
}

TEST(CudaSumSquares, OfNothingIsZero) {
  with_cuda_floats([](const Device& d) { EXPECT_EQ(sum_squares_on(d, nullptr, 0), 0); });
}

TEST(CudaSumSquares, OfWhatOverflowedIsNot) {
  with_cuda_floats([](const Device& d) {
    for (float bad : {NAN, kInfinity}) {
      std::vector<float> x(5000, 1.0f);
      x[4500] = bad;
      OnDevice x_on = floats(d, x);
      EXPECT_FALSE(std::isfinite(sum_squares_on(d, x_on.data(), 5000)));
    }
  });
}

TEST(CudaAdamw, IsTheCpus) {
  AdamStep step = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.7f, 1 / (1 - 0.9f), 1 / (1 - 0.95f)};
  with_cuda_floats([&](const Device& d) {
    for (int64_t n : kCounts) {
      SCOPED_TRACE(n);
      auto p = noise(n, 1), m = noise(n, 2, 0.1), v = noise(n, 3, 0.01), g = noise(n, 4);
      for (float& x : v) x = std::abs(x);
      OnDevice p_on = floats(d, p), m_on = floats(d, m), v_on = floats(d, v), g_on = floats(d, g);
      d.run.adamw(p_on.data(), m_on.data(), v_on.data(), g_on.data(), n, step);
      auto p_terms = magnitudes(p), m_terms = magnitudes(m);
      for (int64_t i = 0; i < n; ++i)
        m_terms[i] = step.beta1 * m_terms[i] + (1 - step.beta1) * std::abs(g[i] * step.grad_scale);
      cpu_kernels().adamw(p.data(), m.data(), v.data(), g.data(), n, step);
      for (int64_t i = 0; i < n; ++i)
        p_terms[i] = p_terms[i] * (1 + step.lr * step.decay) +
                     step.lr * m_terms[i] * step.correction1 / (std::sqrt(v[i] * step.correction2) + step.eps);
      EXPECT_TRUE(close(p_on.values(), p, p_terms, kFloatTolerance));
      EXPECT_TRUE(close(m_on.values(), m, m_terms, kFloatTolerance));
      EXPECT_TRUE(close(v_on.values(), v, magnitudes(v), kFloatTolerance));
    }
  });
}

TEST(CudaAdamw, FirstStepMovesByTheLearningRate) {
  with_cuda_floats([](const Device& d) {
    OnDevice p_on = floats(d, {1, 1}), m_on = floats(d, {0, 0}), v_on = floats(d, {0, 0}), g_on = floats(d, {3, -0.2f});
    d.run.adamw(p_on.data(), m_on.data(), v_on.data(), g_on.data(), 2, {0.1f, 0.9f, 0.95f, 0, 0, 1, 10, 20});
    EXPECT_TRUE(close(p_on.values(), {0.9f, 1.1f}, {1}, kFloatTolerance));
  });
}

TEST(CudaOptimizer, TakesTensorsThatBeginAnywhere) {
  with_cuda_floats([](const Device& d) {
    AdamStep step = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.7f, 1 / (1 - 0.9f), 1 / (1 - 0.95f)};
    int64_t n = 600;
    auto p = noise(n, 1), m = noise(n, 2), g = noise(n, 4);
    std::vector<float> v(n, 1.0f);
    OnDevice p_on = floats(d, p), m_on = floats(d, m), v_on = floats(d, v), g_on = floats(d, g);
    d.run.adamw(p_on.data() + 1, m_on.data() + 2, v_on.data() + 3, g_on.data() + 4, n - 4, step);
    d.run.blend(m_on.data() + 1, g_on.data() + 3, 0.05f, 0.95f, n - 4);
    cpu_kernels().adamw(p.data() + 1, m.data() + 2, v.data() + 3, g.data() + 4, n - 4, step);
    cpu_kernels().blend(m.data() + 1, g.data() + 3, 0.05f, 0.95f, n - 4);
    EXPECT_TRUE(close(p_on.values(), p, {1}, kFloatTolerance));
    EXPECT_TRUE(close(m_on.values(), m, {1}, kFloatTolerance));
    EXPECT_TRUE(close(v_on.values(), v, {1}, kFloatTolerance));
  });
}

TEST(CudaBlend, IsTheCpus) {
  with_cuda_floats([](const Device& d) {
    for (int64_t n : kCounts) {
      SCOPED_TRACE(n);
      auto x = noise(n, 1), y = noise(n, 2);
      OnDevice x_on = floats(d, x), y_on = floats(d, y);
      d.run.blend(y_on.data(), x_on.data(), 0.05f, 0.95f, n);
      auto terms = magnitudes(y);
      for (int64_t i = 0; i < n; ++i) terms[i] = 0.95 * terms[i] + 0.05 * std::abs(x[i]);
      cpu_kernels().blend(y.data(), x.data(), 0.05f, 0.95f, n);
      EXPECT_TRUE(close(y_on.values(), y, terms, kFloatTolerance));
    }
  });
}

TEST(CudaRowNormalize, IsTheCpus) {
  with_cuda_floats([](const Device& d) {
    for (int width : {1, 3, 16, 33, 130, 1000})
      for (int rows : {1, 5, 13}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
        auto x = noise(size_t(rows) * width, 1), v = noise(rows, 2);
        for (float& second : v) second = std::abs(second);
        OnDevice x_on = floats(d, x), v_on = floats(d, v);
        d.run.row_normalize(x_on.data(), v_on.data(), 0.95f, 1e-8f, rows, width);
        cpu_kernels().row_normalize(x.data(), v.data(), 0.95f, 1e-8f, rows, width);
        EXPECT_TRUE(close(x_on.values(), x, magnitudes(x), kFloatTolerance));
        EXPECT_TRUE(close(v_on.values(), v, magnitudes(v), kFloatTolerance));
      }
  });
}

TEST(CudaOptimizer, DoesNothingWithoutElements) {
  with_cuda_floats([](const Device& d) {
    d.run.adamw(nullptr, nullptr, nullptr, nullptr, 0, {});
    d.run.blend(nullptr, nullptr, 1, 1, 0);
    d.run.row_normalize(nullptr, nullptr, 1, 1, 0, 8);
  });
}

}  // namespace
