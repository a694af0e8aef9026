// The small operations on rows and elements, on the device. Where the CPU's arithmetic leaves nothing open (copies, one
// rounded operation an element, sums in row order) the device has its bits; in bfloat16, those bits rounded once.
// Sigmoids and sums over slabs of rows: within the tolerance; a sigmoid in bfloat16 is rounded once.
#include "indexed.h"

namespace {

constexpr int kWidths[] = {1, 7, 8, 33, 256, 1032};
constexpr int64_t kCounts[] = {1, 7, 16, 511, 1024, 2051};

// Row numbers below `limit`, with repeats.
std::vector<int> some_rows(int n, int limit, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> rows(n);
  for (int& row : rows) row = int(random() % limit);
  return rows;
}

void compare_indexed(const Device& d, int rows, int width) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  const Kernels& cpu = cpu_kernels();
  size_t n = size_t(rows) * width;
  auto few = d.rounded(noise(n, 1)), many = d.rounded(noise(n + 5 * width, 2)), added = many, gathered = junk(n);
  auto source = some_rows(rows, rows + 5, 3), to = different_rows(rows, rows + 5, 4);
  OnDevice few_on = acts(d, few), many_on = acts(d, many), added_on = acts(d, many), gathered_on = acts(d, gathered);
  d.run.gather_rows(gathered_on.data(), many_on.data(), source.data(), rows, width);
  d.run.scatter_rows(many_on.data(), few_on.data(), to.data(), rows, width);
  d.run.scatter_add_rows(added_on.data(), few_on.data(), to.data(), rows, width);
  cpu.gather_rows(gathered.data(), many.data(), source.data(), rows, width);
  cpu.scatter_rows(many.data(), few.data(), to.data(), rows, width);
  cpu.scatter_add_rows(added.data(), few.data(), to.data(), rows, width);
  EXPECT_SAME_BITS(gathered_on.values(), gathered);
  EXPECT_SAME_BITS(many_on.values(), many);
  EXPECT_SAME_BITS(added_on.values(), d.rounded(added));
}

TEST(CudaRows, AreGatheredAndScatteredWithTheCpusBits) {
  with_cuda_tables([](const Device& d) {
    for (int width : kWidths) compare_indexed(d, 5, width);
    compare_indexed(d, 150, 3);
  });
}

TEST(CudaRows, GoBeyond32Bits) {
  with_cuda_tables([](const Device& d) {
    auto x = d.rounded(noise(kFarWidth, 1));
    auto twice = x, thrice = x;
    for (float& v : twice) v = 2 * v;
    for (float& v : thrice) v = 3 * v;
    OnDevice x_on = acts(d, x), far = acts(d, x), got = acts(d, junk(kFarWidth)), gradient = floats(d, x);
    int64_t ahead = int64_t(kFarRow) * kFarWidth;
    float* begins = beginning(d.run, far.data(), ahead);
    d.run.scatter_rows(begins, x_on.data(), &kFarRow, 1, kFarWidth);
    d.run.scatter_add_rows(begins, x_on.data(), &kFarRow, 1, kFarWidth);
    d.run.gather_rows(got.data(), begins, &kFarRow, 1, kFarWidth);
    EXPECT_SAME_BITS(got.values(), twice);
    d.run.embedding_backward(beginning(*d.run.floats, gradient.data(), ahead), far.data(), &kFarRow, 1, kFarWidth);
    EXPECT_SAME_BITS(gradient.values(), thrice);
  });
}

void compare_embedding(const Device& d, int vocab, int width, const std::vector<int>& token) {
  int rows = int(token.size());
  SCOPED_TRACE(testing::Message() << rows << " tokens of " << vocab << ", width " << width);
  auto de = d.rounded(noise(size_t(rows) * width, 1)), dembedding = noise(size_t(vocab) * width, 2);
  OnDevice de_on = acts(d, de), dembedding_on = floats(d, dembedding);
  d.run.embedding_backward(dembedding_on.data(), de_on.data(), token.data(), rows, width);
  cpu_kernels().embedding_backward(dembedding.data(), de.data(), token.data(), rows, width);
  EXPECT_SAME_BITS(dembedding_on.values(), dembedding);
}

TEST(CudaEmbedding, AddsTheRowsOfATokenByBlocks) {
  with_cuda_tables([](const Device& d) {
    for (int width : kWidths) compare_embedding(d, 7, width, some_rows(20, 7, 3));
    compare_embedding(d, 100, 40, some_rows(60, 100, 4));
    compare_embedding(d, 3, 40, std::vector<int>(133, 2));  // one token alone
    compare_embedding(d, 5, 24, some_rows(700, 5, 4));      // in several blocks of rows
    compare_embedding(d, 3, 40, std::vector<int>(513, 1));
    compare_embedding(d, 3, 5, {0});
  });
}

TEST(CudaElements, HaveTheCpusBits) {
  with_cuda_tables([](const Device& d) {
    const Kernels& cpu = cpu_kernels();
    for (int64_t n : kCounts) {
      SCOPED_TRACE(n);
      auto x = d.rounded(noise(n, 1)), y = d.rounded(noise(n, 2)), scaled = junk(n), joined = junk(n), added = y;
      OnDevice x_on = acts(d, x), y_on = acts(d, y), scaled_on = acts(d, scaled), joined_on = acts(d, joined);
      d.run.scale(scaled_on.data(), x_on.data(), 0.3f, n);
      d.run.residual_forward(joined_on.data(), y_on.data(), x_on.data(), 0.3f, n);
      d.run.add(y_on.data(), x_on.data(), n);
      cpu.scale(scaled.data(), x.data(), 0.3f, n);
      cpu.residual_forward(joined.data(), y.data(), x.data(), 0.3f, n);
      cpu.add(added.data(), x.data(), n);
      EXPECT_SAME_BITS(scaled_on.values(), d.rounded(scaled));
      EXPECT_SAME_BITS(joined_on.values(), d.rounded(joined));
      EXPECT_SAME_BITS(y_on.values(), d.rounded(added));
      d.run.zero(x_on.data(), n);
      EXPECT_SAME_BITS(x_on.values(), std::vector<float>(n));
    }
  });
}

TEST(CudaElements, MayBeUpdatedInPlace) {
  with_cuda_tables([](const Device& d) {
    int64_t n = 1041;
    const Kernels& cpu = cpu_kernels();
    auto x = d.rounded(noise(n, 1)), branch = d.rounded(noise(n, 2)), scaled = x, joined = x, squashed = x;
    OnDevice branch_on = acts(d, branch), scaled_on = acts(d, x), joined_on = acts(d, x), squashed_on = acts(d, x);
    d.run.scale(scaled_on.data(), scaled_on.data(), -1.7f, n);
    d.run.residual_forward(joined_on.data(), joined_on.data(), branch_on.data(), -1.7f, n);
    d.run.sigmoid(squashed_on.data(), squashed_on.data(), n);
    cpu.scale(scaled.data(), scaled.data(), -1.7f, n);
    cpu.residual_forward(joined.data(), joined.data(), branch.data(), -1.7f, n);
    cpu.sigmoid(squashed.data(), squashed.data(), n);
    EXPECT_SAME_BITS(scaled_on.values(), d.rounded(scaled));
    EXPECT_SAME_BITS(joined_on.values(), d.rounded(joined));
    EXPECT_TRUE(close(squashed_on.values(), squashed, magnitudes(squashed), d.tolerance(1)));
  });
}

// Also differently far from a boundary of whole pieces.
TEST(CudaElements, MayBeginAnywhere) {
  with_cuda_tables([](const Device& d) {
    int n = 1041;
    auto x = d.rounded(noise(n, 1)), y = d.rounded(noise(n, 2)), want = y;
    OnDevice x_on = acts(d, x), y_on = acts(d, y);
    d.run.add(d.run.at(y_on.data(), 3), d.run.at(x_on.data(), 1), n - 10);
    cpu_kernels().add(want.data() + 3, x.data() + 1, n - 10);
    EXPECT_SAME_BITS(y_on.values(), d.rounded(want));
    d.run.add(d.run.at(y_on.data(), 5), d.run.at(x_on.data(), 5), n - 10);
    want = d.rounded(want);
    cpu_kernels().add(want.data() + 5, x.data() + 5, n - 10);
    EXPECT_SAME_BITS(y_on.values(), d.rounded(want));
  });
}

TEST(CudaElements, SigmoidIsDefinedEverywhere) {
  with_cuda_tables([](const Device& d) {
    std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, NAN, 1e-45f, 85.0f, -85.0f, 1e30f, -1e30f};
    for (int i = -300; i <= 300; ++i) x.push_back(float(i) * 0.29f);
    x = d.rounded(x);
    auto y = junk(x.size());
    OnDevice x_on = acts(d, x), y_on = acts(d, y);
    d.run.sigmoid(y_on.data(), x_on.data(), int64_t(x.size()));
    cpu_kernels().sigmoid(y.data(), x.data(), int64_t(x.size()));
    EXPECT_TRUE(close(y_on.values(), y, magnitudes(y), d.tolerance(1)));
  });
}

void compare_bias(const Device& d, int rows, int width) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  size_t n = size_t(rows) * width;
  auto y = d.rounded(noise(n, 1)), dy = d.rounded(noise(n, 2)), bias = noise(width, 3), dbias = noise(width, 4);
  OnDevice y_on = acts(d, y), dy_on = acts(d, dy), bias_on = floats(d, bias), dbias_on = floats(d, dbias);
  d.run.bias_forward(y_on.data(), bias_on.data(), rows, width);
  d.run.bias_backward(dbias_on.data(), dy_on.data(), rows, width);
  auto terms = magnitudes(dbias);
  for (size_t i = 0; i < n; ++i) terms[i % width] += std::abs(dy[i]);
  cpu_kernels().bias_forward(y.data(), bias.data(), rows, width);
  cpu_kernels().bias_backward(dbias.data(), dy.data(), rows, width);
  EXPECT_SAME_BITS(y_on.values(), d.rounded(y));
  EXPECT_TRUE(close(dbias_on.values(), dbias, terms, kFloatTolerance));
}

TEST(CudaBias, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int width : kWidths)
      for (int rows : {1, 5, 45}) compare_bias(d, rows, width);
  });
}

TEST(CudaRows, DoNothingWithoutRowsOrElements) {
  with_cuda_tables([](const Device& d) {
    d.run.gather_rows(nullptr, nullptr, nullptr, 0, 8);
    d.run.scatter_rows(nullptr, nullptr, nullptr, 0, 8);
    d.run.scatter_add_rows(nullptr, nullptr, nullptr, 0, 8);
    d.run.embedding_backward(nullptr, nullptr, nullptr, 0, 8);
    d.run.bias_forward(nullptr, nullptr, 0, 8);
    d.run.bias_backward(nullptr, nullptr, 0, 8);
    d.run.zero(nullptr, 0);
    d.run.scale(nullptr, nullptr, 1, 0);
    d.run.add(nullptr, nullptr, 0);
    d.run.sigmoid(nullptr, nullptr, 0);
    d.run.residual_forward(nullptr, nullptr, nullptr, 1, 0);
  });
}

}  // namespace
