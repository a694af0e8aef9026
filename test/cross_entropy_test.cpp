// Softmax cross-entropy: every table against the definition, bit for bit, and its gradient against differences.
#include "bits.h"
#include "reference.h"

namespace {

struct Outcome {
  std::vector<double> loss, z_squared;
  std::vector<int> best;
  std::vector<float> logits;
};

void compare(int rows, int vocab, const std::vector<float>& logits, bool gradient, float z_loss) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << (gradient ? ", gradient, z " : ", z ") << z_loss);
  std::vector<int> target(rows), best(rows);
  for (int r = 0; r < rows; ++r) target[r] = (r * 7 + 3) % vocab;
  std::vector<float> weight = noise(rows, 5, 0.1), dlogits = logits;
  const float* weights = gradient ? weight.data() : nullptr;
  std::vector<double> loss(rows), z_squared(rows);
  reference::cross_entropy(loss.data(), z_squared.data(), best.data(), dlogits.data(), target.data(), weights, z_loss,
                           rows, vocab);
  with_every_table([&](const Kernels& kernels) {
    Guarded<double> got_loss(rows, 7.0), got_z(rows, 7.0), bare_loss(rows, 7.0);
    Guarded<int> got_best(rows, -7);
    Guarded<float> got(logits), bare(logits);
    kernels.cross_entropy(got_loss.data(), got_z.data(), got_best.data(), got.data(), target.data(), weights, z_loss,
                          rows, vocab);
    EXPECT_SAME_BITS(got_loss, loss);
    EXPECT_SAME_BITS(got_z, z_squared);
    EXPECT_SAME_BITS(got_best, best);
    EXPECT_SAME_BITS(got, dlogits);
    kernels.cross_entropy(bare_loss.data(), nullptr, nullptr, bare.data(), target.data(), weights, z_loss, rows, vocab);
    EXPECT_SAME_BITS(bare_loss, loss);
    EXPECT_SAME_BITS(bare, dlogits);
  });
}

TEST(CrossEntropy, HasTheBitsOfItsDefinition) {
  for (int vocab : {1, 2, 15, 16, 17, 33, 100, 257})
    for (int rows : {1, 5, 13, 70})
      for (bool gradient : {false, true})
        compare(rows, vocab, noise(size_t(rows) * vocab, 1, 4), gradient, rows == 5 ? 0.0f : 1e-2f);
  compare(3, 5003, noise(3 * 5003, 2, 3), true, 1e-4f);
}

TEST(CrossEntropy, HandlesDenormalsZerosAndExtremes) {
  for (int vocab : {3, 17, 40}) compare(7, vocab, awkward(7 * vocab, 1), true, 1e-2f);
}

TEST(CrossEntropy, ExcludedTokensMayBeMinusInfinity) {
  auto logits = noise(5 * 20, 1);
  for (int r = 0; r < 5; ++r)
    for (int i = 0; i < 20; i += 4) logits[r * 20 + i] = i == (r * 7 + 3) % 20 ? logits[r * 20 + i] : -kInfinity;
  compare(5, 20, logits, true, 1e-2f);
}

TEST(CrossEntropy, BestIsTheFirstOfEquals) {
  std::vector<float> logits(2 * 40, 1.0f);
  logits[9] = logits[17] = logits[31] = 2.0f;
  compare(2, 40, logits, true, 0.0f);
  with_every_table([&](const Kernels& kernels) {
    auto x = logits;
    int target[] = {0, 0}, best[2];
    double loss[2];
    kernels.cross_entropy(loss, nullptr, best, x.data(), target, nullptr, 0, 2, 40);
    EXPECT_EQ(best[0], 9);
    EXPECT_EQ(best[1], 0);
  });
}

TEST(CrossEntropy, GradientIsTheDerivativeOfTheWeightedLoss) {
  for (double z_loss : {0.0, 0.05}) {
    int rows = 3, vocab = 6;
    auto logits = noise<double>(18, 1, 2), weight = noise<double>(3, 2), dlogits = logits;
    std::vector<int> target = {5, 0, 2};
    std::vector<double> loss(3), z_squared(3);
    reference::cross_entropy(loss.data(), z_squared.data(), nullptr, dlogits.data(), target.data(), weight.data(),
                             z_loss, rows, vocab);
    expect_gradient("dlogits", dlogits, logits, [&] {
      reference::cross_entropy<double>(loss.data(), z_squared.data(), nullptr, logits.data(), target.data(), nullptr, 0,
                                       rows, vocab);
      double total = 0;
      for (int r = 0; r < rows; ++r) total += weight[r] * (loss[r] + z_loss * z_squared[r]);
      return total;
    });
  }
}

}  // namespace
