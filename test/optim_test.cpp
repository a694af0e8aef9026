// The optimizers against docs/training.md written out in double precision; the schedule; the state that is saved.
#include "optim.h"

#include "engine.h"
#include "scratch.h"

namespace {

// --- Written out ---------------------------------------------------------------------------------------------------

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  return t;
}

double frobenius(const Matrix& a) {
  double square = 0;
  for (const auto& row : a)
    for (double x : row) square += x * x;
  return std::sqrt(square);
}

// One tensor's state and its two ways to be updated, from spec to sums without a thought for speed.
struct Naive {
  std::vector<double> m, v;
  int updates = 0;

  void adamw(std::vector<double>& p, const std::vector<double>& g, double lr, double decay) {
    m.resize(p.size()), v.resize(p.size()), ++updates;
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i], v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
      double m_hat = m[i] / (1 - std::pow(0.9, updates)), v_hat = v[i] / (1 - std::pow(0.95, updates));
      p[i] -= lr * decay * p[i] + lr * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
  }

  void normuon(std::vector<double>& w, const std::vector<double>& g, int rows, int columns, double lr, double decay) {
    m.resize(w.size()), v.resize(rows), ++updates;
    for (size_t i = 0; i < w.size(); ++i) m[i] = 0.95 * m[i] + 0.05 * g[i];
    Matrix x(rows, std::vector<double>(columns));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) x[i][j] = m[i * columns + j];
    double size = frobenius(x);
    for (auto& row : x)
      for (double& value : row) value /= size;
    for (int step = 0; step < 5; ++step) {  // aX + b(XXᵀ)X + c(XXᵀ)²X
      Matrix gram = product(x, transposed(x)), once = product(gram, x), twice = product(gram, once);
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) x[i][j] = 3.4445 * x[i][j] - 4.7750 * once[i][j] + 2.0315 * twice[i][j];
    }
    for (int i = 0; i < rows; ++i) {
      double mean = 0;
      for (double value : x[i]) mean += value * value / columns;
      v[i] = 0.95 * v[i] + 0.05 * mean;
      for (double& value : x[i]) value /= std::sqrt(v[i]) + 1e-8;
    }
    double move = 0.2 * lr * std::sqrt(double(rows) * columns) / frobenius(x);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) w[i * columns + j] += -lr * decay * w[i * columns + j] - move * x[i][j];
  }
};

// Warm-up, stable, decay; the decay of weights falls with the learning rate during the cooldown.
struct NaiveRates {
  double lr, decay;
  NaiveRates(const OptimizerOptions& o, int64_t step, int64_t steps) : lr(double(o.lr)), decay(double(o.weight_decay)) {
    lr *= std::min(1.0, double(step + 1) / o.warmup);
    double start = double(steps) * (1 - double(o.cooldown));
    if (double(step) < start) return;
    double left = double(steps - step) / (double(steps) - start);
    lr *= left, decay *= lr / double(o.lr);
  }
};

// --- A run of both -------------------------------------------------------------------------------------------------

ModelConfig optimized_config() {
  ModelConfig config = tiny_config();
  config.layers = 1, config.head_gate = config.branch_norm = true;
  return config;  // q, o 16 × 8 and back, gate, up 12 × 8, down 8 × 12, the feedback's 8 × 8
}

struct Training {
  explicit Training(const OptimizerOptions& o, const ModelConfig& config = optimized_config())
      : options(resolved(o)),
        model(config),
        gradients(model.layout.floats),
        optimizer(cpu_kernels(), model.layout, options) {
    fill_with_noise(model);
  }
  static OptimizerOptions resolved(OptimizerOptions o) {
    o.resolve(192);
    return o;
  }
  // One step with noise as the gradient.
  void step(int64_t step, int64_t steps, bool with_feedback, double size = 0.02) {
    for (const Param& p : model.layout.params) {
      std::vector<float> g = noise(p.size(), unsigned(1000 * step) + unsigned(p.offset), size);
      std::copy(g.begin(), g.end(), gradients.data() + p.offset);
    }
    norm = optimizer.gradient_norm(gradients.data(), with_feedback);
    optimizer.step(model.block.data(), gradients.data(), norm, with_feedback, step, steps);
  }
  std::vector<float> all() const { return {model.block.data(), model.block.data() + model.block.size()}; }

  OptimizerOptions options;
  Model model;
  Block gradients;
  Optimizer optimizer;
  double norm = 0;
};

// Twenty steps beside the written-out optimizer: warm-up, stable, cooldown, large and small gradients, one-pass steps
// in between.
void compare_with_naive(OptimizerOptions options, double tolerance) {
  options.warmup = 5;
  Training run(options);
  std::map<std::string, Naive> naive;
  std::map<std::string, std::vector<double>> weights;
  for (const Param& p : run.model.layout.params) {
    std::vector<float> values = tensor(run.model.block.data(), p);
    weights[p.name].assign(values.begin(), values.end());
  }
  for (int64_t step = 0; step < 20; ++step) {
    bool with_feedback = step % 3 != 0;
    run.step(step, 20, with_feedback, step % 4 == 1 ? 0.5 : 0.01);
    double square = 0;
    for (const Param& p : run.model.layout.params)
      for (float g : tensor(run.gradients.data(), p))
        square += with_feedback || !p.feedback ? double(g) * double(g) : 0;
    EXPECT_NEAR(run.norm, std::sqrt(square), 1e-6 * run.norm);
    double clip = double(run.options.clip), scale = clip > 0 ? std::min(1.0, clip / std::sqrt(square)) : 1;
    EXPECT_EQ(scale<1, clip> 0 && step % 4 == 1) << "some steps are clipped, some are not";
    NaiveRates rates(run.options, step, 20);
    for (const Param& p : run.model.layout.params) {
      if (p.feedback && !with_feedback) continue;
      std::vector<double> g;
      for (float x : tensor(run.gradients.data(), p)) g.push_back(double(x) * scale);
      bool matrix = p.kind == ParamKind::matrix;
      if (run.options.kind == OptimizerKind::normuon && matrix)
        naive[p.name].normuon(weights[p.name], g, p.rows, p.columns, rates.lr, rates.decay);
      else if (run.options.kind == OptimizerKind::normuon)
        naive[p.name].adamw(weights[p.name], g, rates.lr / 20, 0);
      else
        naive[p.name].adamw(weights[p.name], g, rates.lr, matrix ? rates.decay : 0);
    }
    for (const Param& p : run.model.layout.params) {
      std::vector<float> got = tensor(run.model.block.data(), p);
      double error = 0;
      for (size_t i = 0; i < got.size(); ++i) error = std::max(error, std::abs(double(got[i]) - weights[p.name][i]));
      ASSERT_LT(error, tolerance) << p.name << " after step " << step;
    }
  }
  for (size_t i = 0; i < run.model.layout.params.size(); ++i)
    EXPECT_EQ(run.optimizer.step_counts()[i], run.model.layout.params[i].feedback ? 13 : 20);
}

TEST(Optimizer, AdamwIsWhatItsFormulasSay) {
  compare_with_naive({.kind = OptimizerKind::adamw, .lr = 0.01f, .weight_decay = 0.5f}, 2e-6);
}

TEST(Optimizer, AdamwWithoutClippingOrDecayIsWhatItsFormulasSay) {
  compare_with_naive({.kind = OptimizerKind::adamw, .lr = 0.01f, .weight_decay = 0, .clip = 0}, 2e-6);
}

TEST(Optimizer, NormuonIsWhatItsFormulasSay) {
  compare_with_naive({.kind = OptimizerKind::normuon, .lr = 0.01f, .weight_decay = 0.5f}, 5e-6);
}

TEST(Optimizer, EveryTableAndNumberOfThreadsGivesTheSameBits) {
  ModelConfig config = tiny_config();
  config.vocab = 129, config.layers = 1, config.width = 70, config.ffn = 150;
  Model start(config);
  fill_with_noise(start);
  std::vector<float> gradients[2] = {noise(start.block.size(), 1), noise(start.block.size(), 2)};
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon}) {
    OptimizerOptions options = {.kind = kind};
    options.resolve(192);
    std::vector<float> want;
    with_every_table([&](const Kernels& kernels) {
      std::vector<float> params(start.block.data(), start.block.data() + start.block.size());
      Optimizer optimizer(kernels, start.layout, options);
      for (int step = 0; step < 2; ++step) {
        const float* g = gradients[step].data();
        optimizer.step(params.data(), g, optimizer.gradient_norm(g, true), true, step, 300);
      }
      if (want.empty()) want = params;
      EXPECT_SAME_BITS(params, want);
    });
  }
}

// --- What takes part -----------------------------------------------------------------------------------------------

TEST(Optimizer, FeedbackIsLeftAloneInOnePassStepsAsIfAbsent) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon})
    for (Fusion fusion : {Fusion::gate, Fusion::concat, Fusion::add}) {
      ModelConfig config = optimized_config(), bare = config;
      config.fusion = fusion, bare.fusion = Fusion::none;
      Training with({.kind = kind}, config), without({.kind = kind}, bare);
      for (int64_t step = 0; step < 3; ++step) with.step(step, 100, false), without.step(step, 100, false);
      EXPECT_EQ(with.norm, without.norm);
      Model start(config);
      fill_with_noise(start);
      for (const Param& p : with.model.layout.params) {
        const Param* there = without.model.layout.find(p.name);
        EXPECT_SAME_BITS(tensor(with.model.block.data(), p),
                         there ? tensor(without.model.block.data(), *there) : tensor(start.block.data(), p))
            << p.name;
        EXPECT_EQ(with.optimizer.step_counts()[&p - with.model.layout.params.data()], p.feedback ? 0 : 3);
      }
      // And the first step in which it takes part is the first for its bias correction.
      Training late({.kind = kind}, config), early({.kind = kind}, config);
      for (int64_t step = 0; step < 3; ++step) late.step(step, 100, false);
      late.step(3, 100, true), early.step(3, 100, true);
      for (const Param& p : late.model.layout.params) {
        if (!p.feedback) continue;
        EXPECT_SAME_BITS(tensor(late.model.block.data(), p), tensor(early.model.block.data(), p)) << p.name;
      }
    }
}

TEST(Optimizer, DecayFallsOnMatricesOtherThanTheEmbedding) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon}) {
    Training with({.kind = kind, .lr = 0.1f, .weight_decay = 0.3f, .warmup = 0}),
        without({.kind = kind, .lr = 0.1f, .weight_decay = 0, .warmup = 0});
    Model start(optimized_config());
    fill_with_noise(start);
    with.step(0, 100, true), without.step(0, 100, true);
    for (const Param& p : start.layout.params) {
      std::vector<float> before = tensor(start.block.data(), p), a = tensor(with.model.block.data(), p),
                         b = tensor(without.model.block.data(), p);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(b[i] - a[i], p.kind == ParamKind::matrix ? 0.03 * double(before[i]) : 0, 1e-6) << p.name;
    }
  }
}

TEST(Optimizer, NormuonTakesFusedMatricesOneByOne) {
  // Were q, k, v one matrix, a change of v's gradient would move q.
  auto moved = [](double v_size) {
    Training run({.kind = OptimizerKind::normuon, .clip = 0, .warmup = 0});
    for (const Param& p : run.model.layout.params) {
      bool other = p.name.find("v_proj") != std::string::npos || p.name.find("up_proj") != std::string::npos;
      std::vector<float> g = noise(p.size(), unsigned(p.offset), other ? v_size : 1);
      std::copy(g.begin(), g.end(), run.gradients.data() + p.offset);
    }
    run.optimizer.step(run.model.block.data(), run.gradients.data(), 1, true, 0, 100);
    std::vector<float> out;
    for (const Param& p : run.model.layout.params)
      for (const char* name : {"q_proj", "k_proj", "gate_proj"})
        if (p.name.find(name) != std::string::npos)
          for (float x : tensor(run.model.block.data(), p)) out.push_back(x);
    return out;
  };
  std::vector<float> a = moved(1), b = moved(100);
  EXPECT_EQ(a.size(), 8u * (16 + 8 + 12));
  EXPECT_SAME_BITS(a, b);
}

TEST(Optimizer, NormuonsUpdateHasTheSizeOfAdams) {
  Training run({.kind = OptimizerKind::normuon, .lr = 0.02f, .weight_decay = 0, .warmup = 0});
  Model start(optimized_config());
  fill_with_noise(start);
  run.step(0, 100, true);
  for (const Param& p : start.layout.params) {
    if (p.kind != ParamKind::matrix) continue;
    double square = 0;
    std::vector<float> a = tensor(start.block.data(), p), b = tensor(run.model.block.data(), p);
    for (size_t i = 0; i < a.size(); ++i) square += std::pow(double(b[i]) - double(a[i]), 2);
    EXPECT_NEAR(std::sqrt(square / double(a.size())), 0.2 * 0.02, 1e-6) << p.name;
  }
}

TEST(Optimizer, AGradientOfZerosHurtsNothing) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon}) {
    Training run({.kind = kind, .weight_decay = 0, .warmup = 0});
    std::vector<float> before = run.all();
    run.optimizer.step(run.model.block.data(), run.gradients.data(), 0, true, 0, 100);
    EXPECT_SAME_BITS(run.all(), before);
  }
}

TEST(Optimizer, PaddingStaysZero) {
  ModelConfig config = optimized_config();
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon}) {
    Training run({.kind = kind}, config);
    std::fill_n(run.gradients.data(), run.gradients.size(), 1.0f);
    run.optimizer.step(run.model.block.data(), run.gradients.data(), 1, true, 250, 1000);
    for (int i = config.vocab * config.width; i < config.padded_vocab() * config.width; ++i)
      ASSERT_EQ(run.model.params.embedding[i], 0);
  }
}

// --- The schedule --------------------------------------------------------------------------------------------------

TEST(Schedule, WarmsUpStaysAndFalls) {
  OptimizerOptions o;  // 200 steps of warm-up, the last quarter cools down
  EXPECT_DOUBLE_EQ(schedule(o, 0, 4000), 1.0 / 200);
  EXPECT_DOUBLE_EQ(schedule(o, 99, 4000), 0.5);
  EXPECT_EQ(schedule(o, 199, 4000), 1);
  EXPECT_EQ(schedule(o, 2999, 4000), 1);
  EXPECT_EQ(schedule(o, 3000, 4000), 1);
  EXPECT_DOUBLE_EQ(schedule(o, 3500, 4000), 0.5);
  EXPECT_DOUBLE_EQ(schedule(o, 3999, 4000), 0.001);
  EXPECT_FALSE(in_cooldown(o, 2999, 4000));
  EXPECT_TRUE(in_cooldown(o, 3000, 4000));
  for (int64_t steps : {1, 2, 3, 7, 100, 1000})
    for (int64_t step = 0; step < steps; ++step) {
      double share = schedule(o, step, steps);
      ASSERT_GT(share, 0);
      ASSERT_LE(share, 1);
    }
}

TEST(Schedule, WarmUpAndCooldownMayBeMissing) {
  OptimizerOptions o;
  o.warmup = 0, o.cooldown = 0;
  for (int64_t step : {0, 50, 99}) {
    EXPECT_EQ(schedule(o, step, 100), 1);
    EXPECT_FALSE(in_cooldown(o, step, 100));
  }
  o.cooldown = 1;
  EXPECT_EQ(schedule(o, 0, 100), 1);
  EXPECT_DOUBLE_EQ(schedule(o, 75, 100), 0.25);
}

TEST(Schedule, ACosineFallsFromTheWarmUpToTheEnd) {
  OptimizerOptions o;
  o.schedule = ScheduleKind::cosine, o.warmup = 100;
  EXPECT_DOUBLE_EQ(schedule(o, 49, 1100), 0.5);
  EXPECT_EQ(schedule(o, 99, 1100), 1);
  EXPECT_EQ(schedule(o, 100, 1100), 1);
  EXPECT_DOUBLE_EQ(schedule(o, 600, 1100), 0.5);
  EXPECT_DOUBLE_EQ(schedule(o, 850, 1100), 0.5 * (1 - std::sqrt(0.5)));
  EXPECT_GT(schedule(o, 1099, 1100), 0);
  EXPECT_LT(schedule(o, 1099, 1100), 1e-5);
  EXPECT_FALSE(in_cooldown(o, 1099, 1100)) << "nothing of what belongs to a cooldown";
  EXPECT_DOUBLE_EQ(schedule(o, 9, 20), 0.1) << "a run that ends within its warm-up";
}

TEST(Schedule, EndsAtTheLeastLearningRate) {
  OptimizerOptions o;
  o.lr = 1e-3f, o.min_lr = 1e-4f, o.warmup = 0;
  EXPECT_EQ(schedule(o, 2000, 4000), 1);
  EXPECT_NEAR(schedule(o, 3500, 4000), 0.55, 1e-6);
  EXPECT_NEAR(schedule(o, 3999, 4000), 0.1009, 1e-6);
  o.schedule = ScheduleKind::cosine;
  EXPECT_NEAR(schedule(o, 2000, 4000), 0.55, 1e-6);
  EXPECT_NEAR(schedule(o, 3999, 4000), 0.1, 1e-6);
}

TEST(OptimizerOptions, FillInTheKindsOwnDefaults) {
  OptimizerOptions adam, muon, own;
  muon.kind = OptimizerKind::normuon, own.lr = 0.5f, own.weight_decay = 0;
  adam.resolve(192), muon.resolve(192), own.resolve(192);
  EXPECT_FLOAT_EQ(adam.lr, 2e-3f);
  EXPECT_EQ(adam.weight_decay, 0.1f);
  EXPECT_EQ(muon.lr, 1e-2f);
  EXPECT_EQ(muon.weight_decay, 0.01f);
  EXPECT_EQ(own.lr, 0.5f);
  EXPECT_EQ(own.weight_decay, 0);
}

// --- The state -----------------------------------------------------------------------------------------------------

TEST(OptimizerState, ContinuesWithTheSameBits) {
  Scratch folder;
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon}) {
    std::string path = folder / "optimizer.safetensors";
    Training whole({.kind = kind}), first({.kind = kind}), second({.kind = kind});
    for (int64_t step = 0; step < 6; ++step) whole.step(step, 8, step % 2);
    for (int64_t step = 0; step < 3; ++step) first.step(step, 8, step % 2);
    write_safetensors(path, first.optimizer.state(), {});
    {
      SafetensorsFile file(path);
      second.optimizer.load(file, first.optimizer.step_counts());
    }
    std::copy_n(first.model.block.data(), first.model.block.size(), second.model.block.data());
    for (int64_t step = 3; step < 6; ++step) second.step(step, 8, step % 2);
    EXPECT_SAME_BITS(second.all(), whole.all());
    EXPECT_EQ(second.optimizer.step_counts(), whole.optimizer.step_counts());
  }
}

TEST(OptimizerState, HasTwoMomentsForEachTensor) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::normuon}) {
    Training run({.kind = kind});
    std::vector<TensorView> state = run.optimizer.state();
    const std::vector<Param>& params = run.model.layout.params;
    ASSERT_EQ(state.size(), 2 * params.size());
    for (size_t i = 0; i < params.size(); ++i) {
      bool rows = kind == OptimizerKind::normuon && params[i].kind == ParamKind::matrix;
      EXPECT_EQ(state[2 * i].name, "m." + params[i].name);
      EXPECT_EQ(state[2 * i].shape, params[i].shape());
      EXPECT_EQ(state[2 * i + 1].name, "v." + params[i].name);
      EXPECT_EQ(state[2 * i + 1].shape, rows ? std::vector<int64_t>{params[i].rows} : params[i].shape());
    }
  }
}

TEST(OptimizerState, NamesWhatDoesNotFit) {
  Scratch folder;
  std::string path = folder / "optimizer.safetensors";
  Training adam({.kind = OptimizerKind::adamw}), muon({.kind = OptimizerKind::normuon});
  write_safetensors(path, adam.optimizer.state(), {});
  SafetensorsFile file(path);
  EXPECT_EQ(message_of([&] {
              adam.optimizer.load(file, {1, 2, 3});
            }),
            path + ": 3 step counts for " + std::to_string(adam.model.layout.params.size()) + " tensors");
  std::string message = message_of([&] { muon.optimizer.load(file, muon.optimizer.step_counts()); });
  EXPECT_TRUE(has(message, path) && has(message, "v.model.layers.0.self_attn.q_proj.weight")) << message;
}

TEST(OptimizerMemory, IsTwoBlocksAndNormuonsScratch) {
  Training run({.kind = OptimizerKind::adamw});
  Plan adam, muon;
  Optimizer::plan_memory(adam, run.model.layout, {.kind = OptimizerKind::adamw});
  Optimizer::plan_memory(muon, run.model.layout, {.kind = OptimizerKind::normuon});
  EXPECT_EQ(adam.total(), 8.0 * double(run.model.layout.floats));
  EXPECT_EQ(muon.total() - adam.total(), 4.0 * (2 * 16 * 8 + 2 * 8 * 8)) << "of q, 16 × 8";
}

}  // namespace
