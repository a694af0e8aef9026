// The engine on the device against the engine on the CPU: training in one, two and three passes, and decoding.
#include "training.h"

namespace {

// Losses, relative: float adds in other orders. bfloat16 rounds each of about ten results a layer and row by 2⁻⁸ of its
// size, mostly to either side alike; what is left of it in a mean over 20 rows has been below 2⁻⁶.
constexpr double kLossTolerance[] = {1e-5, 1.0 / 64};

// `steps` steps of `passes` passes on both.
void expect_same_losses(const Device& d, const ModelConfig& config, OptimizerKind kind, int passes, int steps) {
  SCOPED_TRACE(testing::Message() << passes << " passes, optimizer " << int(kind));
  Training device(d.run, config, kind), cpu(cpu_kernels(), config, kind);
  for (int step = 0; step < steps; ++step) {
    std::vector<double> got = device.step(passes), want = cpu.step(passes);
    for (int k = 0; k < passes; ++k)
      ASSERT_NEAR(got[k], want[k], kLossTolerance[d.bf16] * want[k]) << "step " << step << ", pass " << k;
  }
}

TEST(CudaEngine, TrainsAsTheCpuDoesForTwentyStepsInOneTwoAndThreePasses) {
  with_cuda_tables([](const Device& d) {
    for (int passes : {1, 2, 3})
      expect_same_losses(d, small_config(), OptimizerKind::adamw, passes, d.bf16 && !test_long() ? 4 : 20);
  });
}

TEST(CudaEngine, TrainsWithNormuonAsTheCpuDoes) {
  with_cuda_tables(
      [](const Device& d) { expect_same_losses(d, small_config(), OptimizerKind::normuon, 2, test_long() ? 20 : 4); });
}

TEST(CudaEngine, TrainsEveryKindOfModel) {
  with_cuda_tables([](const Device& d) {
    for (auto& [name, config] : tiny_configs()) {
      SCOPED_TRACE(name);
      ModelConfig longer = config;
      longer.context = 32;
      expect_same_losses(d, longer, OptimizerKind::adamw, 3, 2);
    }
  });
}

TEST(CudaEngine, RecomputesWithTheSameBits) {
  with_cuda_tables([](const Device& d) {
    std::vector<float> want;
    for (Recompute recompute : {Recompute::none, Recompute::norms, Recompute::block}) {
      Training training(d.run, small_config());
      training.runner =
          std::make_unique<PassRunner>(d.run, training.model.config, PassLimits{Training::kRows, 3, recompute});
      training.step(3);
      if (want.empty()) want = training.parameters();
      EXPECT_SAME_BITS(training.parameters(), want);
    }
  });
}

TEST(CudaEngine, GivesTheSameBitsInEveryRun) {
  with_cuda_tables([](const Device& d) {
    Training first(d.run, small_config()), second(d.run, small_config());
    for (int step = 0; step < 2; ++step) first.step(2), second.step(2);
    EXPECT_SAME_BITS(first.parameters(), second.parameters());
  });
}

// A decoded token beside its prefill and the CPU's, relative to the largest logit. On a device products of other shapes are
// added in other orders.
TEST(CudaEngine, DecodesWhatThePrefillSays) {
  with_cuda_tables([](const Device& d) {
    Model model(small_config());
    fill_with_noise(model);
    std::vector<int> tokens;
    for (int t = 0; t < 20; ++t) tokens.push_back(t * 7 % model.config.vocab);
    for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential}) {
      SCOPED_TRACE(name_of(mode));
      std::vector<float> want = decoded_logits(cpu_kernels(), model, tokens, 5, mode);
      double largest = 0;
      for (float x : want) largest = std::max(largest, double(std::abs(x)));
      EXPECT_TRUE(close(decoded_logits(d.run, model, tokens, 5, mode), want, {largest}, d.bf16 ? 0.1 : 2e-5));
      if (mode != DecodeMode::standard) continue;
      std::vector<float> whole = decoded_logits(d.run, model, tokens, 20, mode);
      std::vector<float> last(want.end() - model.config.vocab, want.end());
      EXPECT_TRUE(close(whole, last, {largest}, d.bf16 ? 0.1 : 2e-5));
    }
  });
}

}  // namespace
