// Tokens drawn on the device are those that sample_token draws: the sums differ in the last bits of a double, so that
// a random number between the two, one in some 10¹⁴, would draw another.
#include <set>

#include "device.h"
#include "random.h"

namespace {

std::vector<uint64_t> keys_of(int rows) {
  std::vector<uint64_t> keys;
  for (int r = 0; r < rows; ++r) keys.push_back(random_key(11, Purpose::sampling, 0, r));
  return keys;
}

void compare(const Device& d, int rows, int vocab, std::vector<float> logits, Sampling s) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << ", temperature " << s.temperature << ", top_k "
                                  << s.top_k << ", top_p " << s.top_p);
  logits = d.rounded(logits);
  auto keys = keys_of(rows);
  std::vector<int> got(rows, -1), want(rows);
  OnDevice on = acts(d, logits);
  d.run.sample(got.data(), on.data(), rows, vocab, s, keys.data());
  for (int r = 0; r < rows; ++r) want[r] = sample_token(&logits[size_t(r) * vocab], vocab, s, keys[r]);
  EXPECT_EQ(got, want);
}

TEST(CudaSampling, DrawsTheCpusTokens) {
  with_cuda_tables([](const Device& d) {
    for (int vocab : {1, 2, 9, 33, 300})
      for (Sampling s : {Sampling{1, 0, 1}, Sampling{0.7f, 5, 1}, Sampling{1, 0, 0.8f}, Sampling{1.3f, 20, 0.9f}})
        compare(d, 40, vocab, noise(size_t(40) * vocab, vocab, 2), s);
    for (Sampling s : {Sampling{1, 0, 1}, Sampling{0.9f, 50, 0.95f}}) compare(d, 2, 3001, noise(2 * 3001, 7, 2), s);
    for (int vocab : {20000, 50257}) compare(d, 1, vocab, noise(vocab, 8, 2), {0.9f, 50, 0.95f});
    compare(d, 0, 7, {}, {});
  });
}

TEST(CudaSampling, TakesTheFirstBestWhereNothingIsDrawn) {
  std::vector<float> logits(4 * 600, 1.0f);
  logits[599] = logits[300] = logits[77] = 2;  // the first of equals
  for (int i = 0; i < 600; ++i) logits[600 + i] = -kInfinity;
  logits[1200 + 9] = kInfinity;
  logits[1800] = NAN;
  with_cuda_tables([&](const Device& d) {
    compare(d, 4, 600, logits, {.temperature = 0});
    compare(d, 4, 600, logits, {.temperature = 1, .top_k = 1});
    std::vector<float> rows_not_finite(logits.begin() + 600, logits.end());
    for (Sampling s : {Sampling{1, 0, 1}, Sampling{1, 7, 0.5f}}) compare(d, 3, 600, rows_not_finite, s);
  });
}

TEST(CudaSampling, ANaNInARowStillGivesOneOfItsTokens) {
  auto logits = noise(300, 1);
  logits[41] = NAN, logits[190] = -NAN;
  with_cuda_tables([&](const Device& d) {
    OnDevice on = acts(d, logits);
    for (Sampling s : {Sampling{1, 0, 1}, Sampling{1, 7, 0.5f}}) {
      int token = -1;
      uint64_t key = 3;
      d.run.sample(&token, on.data(), 1, 300, s, &key);
      EXPECT_GE(token, 0);
      EXPECT_LT(token, 300);
    }
  });
}

TEST(CudaSampling, EqualLogitsAreTakenByIndex) {
  std::vector<float> logits(8 * 200);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = i % 3 == 0 ? 0.0f : i % 3 == 1 ? -0.0f : -1.0f;
  with_cuda_tables([&](const Device& d) {
    for (Sampling s : {Sampling{1, 0, 1}, Sampling{1, 50, 1}, Sampling{1, 0, 0.3f}, Sampling{0.5f, 130, 0.9f}})
      compare(d, 8, 200, logits, s);
  });
}

TEST(CudaSampling, ExcludedTokensAreNeverDrawn) {
  auto logits = noise(8 * 100, 3);
  for (size_t i = 0; i < logits.size(); ++i)
    if (i % 4) logits[i] = -kInfinity;
  with_cuda_tables([&](const Device& d) {
    for (Sampling s : {Sampling{1, 0, 1}, Sampling{1, 60, 1}, Sampling{1, 0, 0.9f}}) compare(d, 8, 100, logits, s);
  });
}

TEST(CudaSampling, KeepsOneTokenAtLeast) {
  with_cuda_tables([](const Device& d) {
    compare(d, 4, 50, noise(4 * 50, 4), {.temperature = 1, .top_k = 0, .top_p = 0});
    compare(d, 4, 50, noise(4 * 50, 4, 30), {.temperature = 0.01f, .top_k = 0, .top_p = 1e-6f});
  });
}

TEST(CudaSampling, DrawsEveryTokenThatIsKept) {
  std::vector<float> row = {0.1f, -0.2f, 0.3f, -1, 0.2f, -3}, logits;
  constexpr int kRows = 60;
  for (int r = 0; r < kRows; ++r) logits.insert(logits.end(), row.begin(), row.end());
  with_cuda_tables([&](const Device& d) {
    std::vector<int> token(kRows);
    OnDevice on = acts(d, logits);
    auto keys = keys_of(kRows);
    d.run.sample(token.data(), on.data(), kRows, 6, {.temperature = 1, .top_k = 4, .top_p = 1}, keys.data());
    EXPECT_EQ(std::set<int>(token.begin(), token.end()), (std::set<int>{0, 1, 2, 4}));
  });
}

}  // namespace
