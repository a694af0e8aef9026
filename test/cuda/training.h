// A small training run on one table, step by step, and what decoding on it gives.
#pragma once
#include "../engine.h"
#include "device.h"
#include "optim.h"

struct Training {
  Training(const Kernels& kernels, const ModelConfig& config, OptimizerKind kind = OptimizerKind::adamw)
      : run(kernels), model(config) {
    init_params(model.layout, model.block.data(), 5);
    weights = std::make_unique<Weights>(run, model);
    grads = Block(run, model.layout.floats);
    grad_views = view_params(config, model.layout, grads.data());
    options.kind = kind, options.warmup = 3, options.lr = 0.01f;
    options.resolve(config.width);
    optimizer = std::make_unique<Optimizer>(run, model.layout, options);
    runner = std::make_unique<PassRunner>(run, model.config, PassLimits{kRows, 3});
  }

  // One step of K passes; the mean loss of each pass before it.
  std::vector<double> step(int passes) {
    Batch batch = random_batch({7, 1, 10, 2}, model.config.vocab, unsigned(done));
    PassOptions pass;
    PassPlan plan =
        plan_passes(batch, passes, draw_prefixes(batch, passes, pass, done, 0), pass, done, 0, batch.target_count());
    PassLosses losses;
    run.floats->zero(grads.data(), int64_t(grads.size()));
    runner->forward(weights->params(), batch, plan);
    runner->backward(weights->params(), grad_views, batch, plan, 1e-4f, losses);
    double norm = optimizer->gradient_norm(grads.data(), passes > 1);
    optimizer->step(weights->floats(), grads.data(), norm, passes > 1, done++, 20);
    weights->changed();
    std::vector<double> means;
    for (int k = 0; k < passes; ++k) means.push_back(losses.mean(k));
    return means;
  }

  std::vector<float> parameters() {
    weights->read_back();
    return {model.block.data(), model.block.data() + model.block.size()};
  }

  static constexpr int kRows = 20;
  const Kernels& run;
  Model model;
  std::unique_ptr<Weights> weights;
  Block grads;
  ModelParams grad_views;
  OptimizerOptions options;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<PassRunner> runner;
  int done = 0;
};

// The longer checks: make test-long.
inline bool test_long() { return std::getenv("FULLBAND_TEST_LONG") != nullptr; }

inline ModelConfig small_config() {
  ModelConfig config;
  config.vocab = 61, config.layers = 2, config.width = 32, config.heads = 4, config.kv_heads = 2, config.head_dim = 8;
  config.ffn = 48, config.context = 32, config.rope_theta = 100;
  return config;
}

// Logits after each token of a document whose first `prompt` tokens come at once and the others one by one.
inline std::vector<float> decoded_logits(const Kernels& run, Model& model, const std::vector<int>& tokens, int prompt,
                                         DecodeMode mode, int rows = 256) {
  Weights weights(run, model);
  Decoder decoder(run, model.config, weights.params(), {1, rows});
  decoder.prefill({{tokens.begin(), tokens.begin() + prompt}}, mode);
  std::vector<float> all;
  for (size_t t = size_t(prompt);; ++t) {
    const float* logits = decoder.logits({0});
    all.insert(all.end(), logits, logits + model.config.vocab);
    if (t == tokens.size()) return all;
    decoder.advance({0}, {tokens[t]});
  }
}
