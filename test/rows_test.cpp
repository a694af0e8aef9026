// The small operations on rows and elements: every table against the definition, bit for bit.
#include "bits.h"
#include "reference.h"

namespace {

constexpr int kWidths[] = {1, 2, 15, 16, 17, 33, 100};
constexpr int64_t kCounts[] = {1, 15, 16, 17, 100, 4096, 9000, 20011};

// Row numbers below `limit`; with repeats where limit is small.
std::vector<int> some_rows(int n, int limit, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> rows(n);
  for (int& row : rows) row = int(random() % limit);
  return rows;
}

TEST(Rows, GatherCopiesTheNamedRows) {
  for (int width : kWidths)
    for (int rows : {1, 5, 13, 300}) {
      auto in = awkward(size_t(7) * width, 1);
      auto source = some_rows(rows, 7, 2);
      std::vector<float> out(size_t(rows) * width);
      reference::gather_rows(out.data(), in.data(), source.data(), rows, width);
      with_every_table([&](const Kernels& kernels) {
        Guarded<float> got(out.size(), 7.0f);
        kernels.gather_rows(got.data(), in.data(), source.data(), rows, width);
        EXPECT_SAME_BITS(got, out);
      });
    }
}

TEST(Rows, ScatterPutsRowsAndLeavesTheOthers) {
  for (int width : kWidths)
    for (int rows : {1, 5, 13, 300}) {
      auto in = awkward(size_t(rows) * width, 1), start = noise(size_t(2 * rows) * width, 2), out = start;
      std::vector<int> to(rows);
      for (int r = 0; r < rows; ++r) to[r] = 2 * (rows - 1 - r) + r % 2;
      reference::scatter_rows(out.data(), in.data(), to.data(), rows, width);
      with_every_table([&](const Kernels& kernels) {
        Guarded<float> got(start);
        kernels.scatter_rows(got.data(), in.data(), to.data(), rows, width);
        EXPECT_SAME_BITS(got, out);
      });
    }
}

TEST(Rows, ScatterAddsRepeatedRowsInOrder) {
  for (int width : kWidths)
    for (int rows : {1, 5, 13, 300}) {
      auto in = noise(size_t(rows) * width, 1), start = awkward(size_t(7) * width, 3), out = start;
      auto source = some_rows(rows, 7, 2);
      reference::scatter_add_rows(out.data(), in.data(), source.data(), rows, width);
      with_every_table([&](const Kernels& kernels) {
        Guarded<float> got(start);
        kernels.scatter_add_rows(got.data(), in.data(), source.data(), rows, width);
        EXPECT_SAME_BITS(got, out);
      });
    }
}

TEST(Rows, ScaleAddResidualAndSigmoidWorkElementwise) {
  for (int64_t n : kCounts) {
    SCOPED_TRACE(n);
    auto x = awkward(n, 1), start = awkward(n, 2);
    auto added = start;
    std::vector<float> scaled(n), joined(n), squashed(n);
    reference::scale(scaled.data(), x.data(), 0.3f, n);
    reference::add(added.data(), x.data(), n);
    reference::residual_forward(joined.data(), start.data(), x.data(), 0.3f, n);
    reference::sigmoid(squashed.data(), x.data(), n);
    with_every_table([&](const Kernels& kernels) {
      Guarded<float> got_scaled(n, 7.0f), got_added(start), got_joined(n, 7.0f), got_squashed(n, 7.0f);
      kernels.scale(got_scaled.data(), x.data(), 0.3f, n);
      kernels.add(got_added.data(), x.data(), n);
      kernels.residual_forward(got_joined.data(), start.data(), x.data(), 0.3f, n);
      kernels.sigmoid(got_squashed.data(), x.data(), n);
      EXPECT_SAME_BITS(got_scaled, scaled);
      EXPECT_SAME_BITS(got_added, added);
      EXPECT_SAME_BITS(got_joined, joined);
      EXPECT_SAME_BITS(got_squashed, squashed);
    });
  }
}

TEST(Rows, ZeroIsPositive) {
  for (int64_t n : kCounts)
    with_every_table([&](const Kernels& kernels) {
      Guarded<float> got(awkward(n, 1));
      kernels.zero(got.data(), n);
      EXPECT_SAME_BITS(got, std::vector<float>(n));
    });
}

TEST(Rows, ScaleSigmoidAndResidualMayWorkInPlace) {
  int n = 133;
  auto x = noise(n, 1), branch = noise(n, 2);
  std::vector<float> scaled(n), joined(n), squashed(n);
  reference::sigmoid(squashed.data(), x.data(), n);
  reference::scale(scaled.data(), x.data(), -1.7f, n);
  reference::residual_forward(joined.data(), x.data(), branch.data(), -1.7f, n);
  with_every_table([&](const Kernels& kernels) {
    Guarded<float> got_scaled(x), got_joined(x), got_squashed(x);
    kernels.sigmoid(got_squashed.data(), got_squashed.data(), n);
    EXPECT_SAME_BITS(got_squashed, squashed);
    kernels.scale(got_scaled.data(), got_scaled.data(), -1.7f, n);
    kernels.residual_forward(got_joined.data(), got_joined.data(), branch.data(), -1.7f, n);
    EXPECT_SAME_BITS(got_scaled, scaled);
    EXPECT_SAME_BITS(got_joined, joined);
  });
}

TEST(Rows, SigmoidIsDefinedEverywhere) {
  std::vector<float> x = {0.0f,    -0.0f, kInfinity, -kInfinity, NAN,     1e-45f,
                          -1e-45f, 88.7f, 89.0f,     104.0f,     -104.0f, 1e30f};
  for (int i = -3000; i <= 3000; ++i) x.push_back(float(i) * 0.0371f);  // beyond both ends of the exponential
  std::vector<float> y(x.size());
  reference::sigmoid(y.data(), x.data(), x.size());
  EXPECT_EQ(y[0], 0.5f);
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_TRUE(std::isnan(y[4]));
  for (size_t i = 12; i < x.size(); ++i) EXPECT_NEAR(y[i], 1 / (1 + std::exp(-double(x[i]))), 2e-7) << x[i];
  with_every_table([&](const Kernels& kernels) {
    Guarded<float> got(x.size(), 7.0f);
    kernels.sigmoid(got.data(), x.data(), x.size());
    EXPECT_SAME_BITS(got, y);
  });
}

TEST(Rows, ExponentialIsTheRealOneToTwoUnits) {
  for (int i = -103000; i <= 88700; ++i) {
    float x = float(i) * 1e-3f;
    double want = std::exp(double(x)), unit = std::max(want * 0x1p-23, 0x1p-149);
    ASSERT_NEAR(reference::exponential(x), want, 2 * unit) << x;
  }
  EXPECT_EQ(reference::exponential(0.0f), 1.0f);
  EXPECT_EQ(reference::exponential(-kInfinity), 0.0f);
  EXPECT_EQ(reference::exponential(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(reference::exponential(NAN)));
}

TEST(Rows, EmbeddingsGetTheirTokensRowsByBlocks) {
  for (int width : kWidths)
    for (int rows : {1, 13, 256, 257, 700})
      for (int vocab : {1, 5, 400}) {
        auto de = awkward(size_t(rows) * width, 1), start = awkward(size_t(vocab) * width, 2), want = start;
        std::vector<int> token(rows);
        for (int r = 0; r < rows; ++r) token[r] = int(random_key(3, r) % uint64_t(vocab));
        reference::embedding_backward(want.data(), de.data(), token.data(), rows, width);
        with_every_table([&](const Kernels& kernels) {
          Guarded<float> got(start);
          kernels.embedding_backward(got.data(), de.data(), token.data(), rows, width);
          EXPECT_SAME_BITS(got, want);
        });
      }
}

TEST(Rows, BiasIsAddedAndItsGradientSummedByBlocksOfRows) {
  for (int width : kWidths)
    for (int rows : {1, 5, 13, 256, 300, 700}) {
      auto bias = awkward(width, 1), start = awkward(size_t(rows) * width, 2), y = start, dbias_start = noise(width, 3);
      auto dbias = dbias_start;
      reference::bias_forward(y.data(), bias.data(), rows, width);
      reference::bias_backward(dbias.data(), start.data(), rows, width);
      with_every_table([&](const Kernels& kernels) {
        Guarded<float> got_y(start), got_dbias(dbias_start);
        kernels.bias_forward(got_y.data(), bias.data(), rows, width);
        kernels.bias_backward(got_dbias.data(), start.data(), rows, width);
        EXPECT_SAME_BITS(got_y, y);
        EXPECT_SAME_BITS(got_dbias, dbias);
      });
    }
}

}  // namespace
