// What the tests of the engine share: small models whose weights the reference has too, batches in both vocabularies,
// and the states that each way of decoding should reach, from the reference alone.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "bits.h"
#include "decode.h"
#include "model.h"
#include "passes.h"
#include "reference.h"

inline ModelConfig tiny_config() {
  ModelConfig config;
  config.vocab = 11, config.layers = 2, config.width = 8, config.heads = 4, config.kv_heads = 2, config.head_dim = 4;
  config.ffn = 12, config.context = 8, config.rope_theta = 100, config.norm_eps = 1e-5f, config.residual_scale = 0.5f;
  return config;
}

// The tiny configuration in all its forms: every fusion, windows, grouped and equal heads, each option alone and all
// together.
inline std::map<std::string, ModelConfig> tiny_configs() {
  std::map<std::string, ModelConfig> all;
  auto with = [&](const char* name, auto change) {
    ModelConfig config = tiny_config();
    change(config);
    all[name] = config;
  };
  with("gate", [](ModelConfig&) {});
  with("concat", [](ModelConfig& c) { c.fusion = Fusion::concat; });
  with("add", [](ModelConfig& c) { c.fusion = Fusion::add; });
  with("window", [](ModelConfig& c) { c.window = 3, c.full_attention_every = 2; });
  with("window everywhere", [](ModelConfig& c) { c.window = 2; });
  with("one kv head", [](ModelConfig& c) { c.kv_heads = 1, c.head_dim = 2; });
  with("equal heads", [](ModelConfig& c) { c.kv_heads = 4; });
  with("head gate", [](ModelConfig& c) { c.head_gate = true; });
  with("branch norm", [](ModelConfig& c) { c.branch_norm = true; });
  with("raw input", [](ModelConfig& c) { c.plain_input = PlainInput::raw; });
  with("all options", [](ModelConfig& c) {
    c.head_gate = c.branch_norm = true, c.window = 3, c.full_attention_every = 2, c.fusion = Fusion::concat;
    c.plain_input = PlainInput::raw;
  });
  return all;
}

// Weights large enough that nothing is near zero, gains near one.
inline void fill_with_noise(Model& model, unsigned seed = 1) {
  for (const Param& p : model.layout.params) {
    bool gain = p.kind == ParamKind::gain;
    std::vector<float> values = noise(p.size(), seed++, gain ? 0.2 : 0.4);
    for (float& x : values) x += gain;
    std::copy(values.begin(), values.end(), model.block.data() + p.offset);
  }
}

inline std::vector<float> tensor(const float* block, const Param& p) {
  return {block + p.offset, block + p.offset + p.size()};
}

template <class T = float>
reference::Model<T> reference_of(const Model& model) {
  reference::Model<T> out(model.config);
  EXPECT_EQ(out.parameters.size(), model.layout.params.size());
  for (const Param& p : model.layout.params) {
    std::vector<T>& to = out.parameters.at(p.name);
    EXPECT_EQ(to.size(), p.size()) << p.name;
    to.assign(model.block.data() + p.offset, model.block.data() + p.offset + p.size());
  }
  return out;
}

// --- Batches -------------------------------------------------------------------------------------------------------

// Documents of these lengths, packed end to end; every `mask`-th target is none (0: all are).
inline Batch random_batch(const std::vector<int>& lengths, int vocab, unsigned seed, int mask = 6) {
  Batch batch;
  std::mt19937 random(seed);
  for (int length : lengths) {
    batch.segments.push_back({batch.rows(), length, 0, batch.rows(), batch.rows()});
    batch.row_of_segment.push_back(batch.sequences++);
    for (int t = 0; t < length; ++t) {
      batch.tokens.push_back(int(random() % vocab));
      batch.targets.push_back(mask > 0 && random() % mask == 0 ? -1 : int(random() % vocab));
    }
  }
  return batch;
}

inline reference::Batch reference_batch(const Batch& batch, int passes, const std::vector<std::vector<int>>& prefix,
                                        int first_segment = 0) {
  reference::Batch out;
  out.tokens = batch.tokens, out.targets = batch.targets, out.passes = passes, out.prefix = prefix;
  out.first_segment = first_segment;
  for (const Segment& segment : batch.segments) out.lengths.push_back(segment.rows);
  return out;
}

// Prefixes of all kinds: one row, some, all.
inline std::vector<std::vector<int>> random_prefixes(const Batch& batch, int passes, unsigned seed) {
  std::vector<std::vector<int>> prefix(passes - 1);
  std::mt19937 random(seed);
  for (auto& of_pass : prefix)
    for (const Segment& segment : batch.segments) {
      int kind = random() % 4, drawn = 1 + int(random() % segment.rows);
      of_pass.push_back(kind == 0 ? segment.rows : kind == 1 ? 1 : drawn);
    }
  return prefix;
}

inline std::vector<std::vector<int>> fully_fused(const Batch& batch, int passes) {
  return std::vector<std::vector<int>>(passes - 1, std::vector<int>(batch.segments.size(), 1));
}

// --- The engine, one batch -----------------------------------------------------------------------------------------

// Passes over one batch, forward and backward, with what they leave.
struct EngineRun {
  EngineRun(const Kernels& kernels, Model& model, const Batch& batch, int passes, Recompute recompute = Recompute::none)
      : model(model),
        batch(batch),
        gradients(model.layout.floats),
        views(view_params(model.config, model.layout, gradients.data())),
        runner(kernels, model.config, {batch.rows(), passes, recompute}) {}

  void forward(const PassPlan& p) {
    plan = p;
    runner.forward(model.params, batch, plan);
  }
  void backward(float z_loss = 0) {
    losses = {};
    runner.backward(model.params, views, batch, plan, z_loss, losses);
  }

  // h of pass k in the order of pass 1's rows, and the losses of its rows, 0 where there is no target.
  std::vector<float> states(int k) const {
    std::vector<float> out;
    for (int row : plan.passes[k - 1].state_row)
      out.insert(out.end(), runner.h(row), runner.h(row) + model.config.width);
    return out;
  }
  std::vector<double> row_losses(int k) const {
    std::vector<double> out;
    for (int row = 0; row < batch.rows(); ++row)
      out.push_back(batch.targets[row] < 0 ? 0 : runner.row_loss(plan.passes[k - 1].state_row[row]));
    return out;
  }
  // The gradients of pass k's own states.
  std::vector<float> state_gradients(int k) const {
    const Pass& pass = plan.passes[k - 1];
    return {runner.dh(pass.first), runner.dh(pass.first) + size_t(pass.rows) * model.config.width};
  }

  Model& model;
  const Batch& batch;
  Block gradients;
  ModelParams views;
  PassRunner runner;
  PassPlan plan;
  PassLosses losses;
};

// --- What decoding should reach ------------------------------------------------------------------------------------

// One row's floats of a matrix.
inline std::vector<float> row_of(const std::vector<float>& matrix, int row, int width) {
  return {matrix.begin() + size_t(row) * width, matrix.begin() + size_t(row + 1) * width};
}

// h of every position of a document whose first `prompt` tokens are its prompt and whose others were decoded one by
// one, written as passes of the reference. In SOFT and FUSED the decoded rows are iterated until they carry each other.
inline std::vector<float> decoded_states(reference::Model<float>& model, const std::vector<int>& tokens, int prompt,
                                         DecodeMode mode, int prefill_passes = 1) {
  int T = int(tokens.size()), D = model.config.width;
  if (mode == DecodeMode::sequential) return model.recurrence(tokens);
  reference::Options options;
  options.backward = false;
  auto run = [&](int rows, int passes, int prefix, const std::vector<std::vector<float>>* carried) {
    std::vector<int> some(tokens.begin(), tokens.begin() + rows);
    std::vector<std::vector<int>> prefixes(passes - 1, std::vector<int>{prefix});
    return model.run({some, some, {rows}, passes, prefixes, 0}, options, carried).states.back();
  };
  if (mode == DecodeMode::standard) return run(T, 1, 1, nullptr);
  int plain = mode == DecodeMode::soft || prefill_passes == 0 ? prompt : 1;
  std::vector<float> before = run(prompt, std::max(1, mode == DecodeMode::soft ? 1 : prefill_passes), 1, nullptr);
  std::vector<float> states(size_t(T) * D);
  for (int exact = prompt; exact <= T; ++exact) {  // rows whose state is right after this iteration
    std::vector<float> carried;
    for (int t = plain; t < T; ++t) {
      std::vector<float> h = row_of(t < prompt ? before : states, t - 1, D);
      carried.insert(carried.end(), h.begin(), h.end());
    }
    std::vector<std::vector<float>> given = {carried};
    states = run(T, 2, plain, &given);
  }
  return states;
}
