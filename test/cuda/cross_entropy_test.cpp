// Softmax cross-entropy on the device against the CPU's. bfloat16: gradients are rounded once.
#include "best.cuh"
#include "device.h"

namespace {

template <class T>
std::vector<T> download(const Device& d, const Block& block, int n) {
  std::vector<T> values(n);
  d.run.download(values.data(), block.data(), n * sizeof(T));
  return values;
}

std::vector<float> narrowed(const std::vector<double>& x) { return {x.begin(), x.end()}; }

void compare(const Device& d, int rows, int vocab, std::vector<float> logits, bool gradient, float z_loss) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << (gradient ? ", gradient, z " : ", z ") << z_loss);
  logits = d.rounded(logits);
  std::vector<int> target(rows), best(rows);
  for (int r = 0; r < rows; ++r) target[r] = (r * 7 + 3) % vocab;
  std::vector<float> weight = noise(rows, 5, 0.1), want = logits;
  const float* weights = gradient ? weight.data() : nullptr;
  std::vector<double> loss(rows), z_squared(rows);
  OnDevice got = acts(d, logits), bare = acts(d, logits);
  Block loss_on(d.run, 2 * rows), z_on(d.run, 2 * rows), best_on(d.run, rows), bare_loss(d.run, 2 * rows);
  auto doubles = [](Block& block) { return reinterpret_cast<double*>(block.data()); };
  d.run.cross_entropy(doubles(loss_on), doubles(z_on), reinterpret_cast<int*>(best_on.data()), got.data(),
                      target.data(), weights, z_loss, rows, vocab);
  d.run.cross_entropy(doubles(bare_loss), nullptr, nullptr, bare.data(), target.data(), weights, z_loss, rows, vocab);
  cpu_kernels().cross_entropy(loss.data(), z_squared.data(), best.data(), want.data(), target.data(), weights, z_loss,
                              rows, vocab);

  std::vector<double> loss_terms(rows), gradient_terms(size_t(rows) * vocab);
  for (int r = 0; r < rows; ++r) {
    const float* x = &logits[size_t(r) * vocab];
    double lse = loss[r] + x[target[r]], most = x[best[r]], w = std::abs(weight[r]);
    loss_terms[r] = std::abs(most) + std::abs(lse - most) + std::abs(x[target[r]]) + 1;
    for (int i = 0; i < vocab; ++i) {
      double p = std::exp(x[i] - lse);
      gradient_terms[size_t(r) * vocab + i] = w * (p + (i == target[r]) + 2 * z_loss * std::abs(lse) * p);
    }
  }
  std::vector<double> z_terms = loss_terms;
  for (double& t : z_terms) t *= t;
  EXPECT_TRUE(close(narrowed(download<double>(d, loss_on, rows)), narrowed(loss), loss_terms, kFloatTolerance));
  EXPECT_TRUE(close(narrowed(download<double>(d, z_on, rows)), narrowed(z_squared), z_terms, kFloatTolerance));
  EXPECT_EQ(download<int>(d, best_on, rows), best);
  // Without a weight the logits stay.
  EXPECT_TRUE(close(got.values(), want, gradient_terms, gradient ? d.tolerance(1) : 0));
  EXPECT_SAME_BITS(bare.values(), got.values());
  EXPECT_SAME_BITS(download<double>(d, bare_loss, rows), download<double>(d, loss_on, rows));
}

TEST(CudaCrossEntropy, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int vocab : {1, 2, 15, 33, 100, 257})
      for (bool gradient : {false, true})
        compare(d, 5, vocab, noise(size_t(5) * vocab, 1, 4), gradient, vocab == 33 ? 0.0f : 1e-2f);
    compare(d, 3, 5003, noise(3 * 5003, 2, 3), true, 1e-4f);
    compare(d, 0, 7, {}, true, 0);
  });
}

TEST(CudaCrossEntropy, HandlesLargeLogits) {
  with_cuda_tables([](const Device& d) {
    for (float shift : {-300.0f, 300.0f}) {
      auto logits = noise(3 * 400, 1, 40);
      for (float& x : logits) x += shift;
      compare(d, 3, 400, logits, true, 0);
    }
  });
}

TEST(CudaCrossEntropy, ExcludedTokensMayBeMinusInfinity) {
  auto logits = noise(5 * 320, 1);
  for (int r = 0; r < 5; ++r)
    for (int i = 0; i < 320; ++i)
      if (i % 4 == 0 && i != (r * 7 + 3) % 320) logits[r * 320 + i] = -kInfinity;
  with_cuda_tables([&](const Device& d) { compare(d, 5, 320, logits, true, 1e-2f); });
}

TEST(CudaCrossEntropy, BestIsTheFirstOfEquals) {
  std::vector<float> logits(3 * 700, 1.0f);
  logits[650] = logits[301] = logits[31] = 2.0f;
  for (int i = 0; i < 700; ++i) logits[700 + i] = -kInfinity;
  logits[700 + 10] = 0;  // the target's
  with_cuda_tables([&](const Device& d) { compare(d, 3, 700, logits, true, 0); });
}

TEST(CudaCrossEntropy, ARowWithoutASoftmaxHasNoLoss) {
  with_cuda_tables([](const Device& d) {
    for (float x : {-kInfinity, kInfinity, NAN}) {
      OnDevice logits = acts(d, std::vector<float>(20, x));
      Block loss(d.run, 2), best(d.run, 1);
      int target = 3;
      d.run.cross_entropy(reinterpret_cast<double*>(loss.data()), nullptr, reinterpret_cast<int*>(best.data()),
                          logits.data(), &target, nullptr, 0, 1, 20);
      EXPECT_TRUE(std::isnan(download<double>(d, loss, 1)[0]));
      EXPECT_EQ(download<int>(d, best, 1)[0], 0);
    }
  });
}

TEST(CudaCrossEntropy, IndicesMayExceed32Bits) { EXPECT_EQ(row_at(70000, 50257), 70000ll * 50257); }

}  // namespace
