// The reference model against itself: its gradients against central differences, and the identities of docs/model.md.
#include "reference.h"

#include <ostream>

#include "bits.h"

namespace {

using reference::Batch;
using reference::GradientMode;
using reference::Model;
using reference::Options;
using reference::Result;

ModelConfig small_config() {
  ModelConfig config;
  config.vocab = 11, config.layers = 2, config.width = 8, config.heads = 4, config.kv_heads = 2, config.head_dim = 4;
  config.ffn = 12, config.context = 8, config.rope_theta = 100, config.norm_eps = 1e-5f, config.residual_scale = 0.5f;
  return config;
}

// Weights large enough that nothing is near zero, gains near one.
template <class T>
Model<T> random_model(const ModelConfig& config, unsigned seed = 1) {
  Model<T> model(config);
  for (auto& [name, parameter] : model.parameters) {
    bool gain = name.find("norm") != std::string::npos;
    parameter = noise<T>(parameter.size(), seed++, gain ? 0.2 : 0.4);
    for (T& x : parameter) x += gain;
  }
  return model;
}

// Three packed documents, one of a single token, with some targets masked; passes 2 and 3 have prefixes of all kinds:
// one row, some rows, all rows.
Batch packed_batch(int passes, int vocab = 11) {
  Batch batch;
  batch.lengths = {7, 1, 5}, batch.passes = passes;
  batch.prefix = {{3, 1, 5}, {1, 1, 2}};
  batch.prefix.resize(passes - 1, {1, 1, 1});
  for (int i = 0; i < 13; ++i) {
    batch.tokens.push_back((i * 7 + 2 + i / 5) % vocab);
    batch.targets.push_back(i == 1 || i == 8 ? -1 : (i * 5 + 1) % vocab);
  }
  return batch;
}

Batch one_document(int length, int passes, int prefix) {
  Batch batch;
  batch.lengths = {length}, batch.passes = passes;
  batch.prefix.assign(passes - 1, {prefix});
  for (int i = 0; i < length; ++i) batch.tokens.push_back((i * 7 + 2) % 11), batch.targets.push_back((i * 3 + 1) % 11);
  return batch;
}

double norm(const std::vector<double>& v) {
  double square = 0;
  for (double x : v) square += x * x;
  return std::sqrt(square);
}

template <class T>
double relative_error(const std::vector<T>& got, const std::vector<T>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i)
    error += std::pow(double(got[i]) - double(want[i]), 2), size += std::pow(double(want[i]), 2);
  return error == 0 ? 0 : std::sqrt(error / size);
}

// --- Gradients against central differences -------------------------------------------------------------------------

struct Case {
  std::string name;
  ModelConfig config = small_config();
  Batch batch = packed_batch(3);
  Options options = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Case with(std::string name, void (*change)(Case&)) {
  Case c;
  c.name = name;
  c.options.jitter = 0.1f;
  change(c);
  return c;
}

std::vector<Case> gradient_cases() {
  return {
      with("OnePass", [](Case& c) { c.batch = packed_batch(1); }),
      with("TwoPasses", [](Case& c) { c.batch = packed_batch(2); }),
      with("ThreePasses", [](Case&) {}),
      with("FourPasses", [](Case& c) { c.batch = packed_batch(4); }),
      with("AllPrefix",
           [](Case& c) {
             c.batch = packed_batch(2), c.batch.prefix = {{7, 1, 5}};
           }),
      with("AllFused",
           [](Case& c) {
             c.batch.prefix = {{1, 1, 1}, {1, 1, 1}};
           }),
      with("LongerPrefixLater",
           [](Case& c) {
             c.batch.prefix = {{2, 1, 1}, {5, 1, 4}};
           }),
      with("WithoutReuse", [](Case& c) { c.options.reuse = false; }),
      with("Concat", [](Case& c) { c.config.fusion = Fusion::concat; }),
      with("ConcatWithoutReuse", [](Case& c) { c.config.fusion = Fusion::concat, c.options.reuse = false; }),
      with("Add", [](Case& c) { c.config.fusion = Fusion::add; }),
      with("None", [](Case& c) { c.config.fusion = Fusion::none, c.batch = packed_batch(1); }),
      with("Window", [](Case& c) { c.config.window = 2, c.config.full_attention_every = 2; }),
      with("WindowEverywhere", [](Case& c) { c.config.window = 3; }),
      with("EqualHeads", [](Case& c) { c.config.kv_heads = 4; }),
      with("OneKvHead", [](Case& c) { c.config.kv_heads = 1, c.config.head_dim = 2; }),
      with("HeadGate", [](Case& c) { c.config.head_gate = true; }),
      with("BranchNorm", [](Case& c) { c.config.branch_norm = true; }),
      with("HeadGateAndBranchNorm", [](Case& c) { c.config.head_gate = c.config.branch_norm = true; }),
      with("RawInput", [](Case& c) { c.config.plain_input = PlainInput::raw; }),
      with("RawInputOnePass", [](Case& c) { c.config.plain_input = PlainInput::raw, c.batch = packed_batch(1); }),
      with("RawInputAdd", [](Case& c) { c.config.plain_input = PlainInput::raw, c.config.fusion = Fusion::add; }),
      with("RawWithoutReuse", [](Case& c) { c.config.plain_input = PlainInput::raw, c.options.reuse = false; }),
      with("ZLoss", [](Case& c) { c.options.z_loss = 0.05f; }),
      with("Lambda", [](Case& c) { c.options.lambda = 0.3; }),
      with("Detach", [](Case& c) { c.options.gradient = GradientMode::detach; }),
      with("DetachWithoutReuse", [](Case& c) { c.options.gradient = GradientMode::detach, c.options.reuse = false; }),
      with("DetachConcat",
           [](Case& c) { c.options.gradient = GradientMode::detach, c.config.fusion = Fusion::concat; }),
      with("Last", [](Case& c) { c.options.gradient = GradientMode::last; }),
      with("LastOfTwo", [](Case& c) { c.options.gradient = GradientMode::last, c.batch = packed_batch(2); }),
      with("LastRawZLoss",
           [](Case& c) {
             c.options.gradient = GradientMode::last, c.options.z_loss = 0.05f;
             c.config.plain_input = PlainInput::raw;
           }),
  };
}

class Gradients : public testing::TestWithParam<Case> {};

// The slope of the objective along `direction` in one tensor, by differences of the fourth order.
double slope(Model<double>& model, std::vector<double>& parameter, const std::vector<double>& direction, const Case& c,
             const std::vector<std::vector<double>>* frozen) {
  Options options = c.options;
  options.backward = false;
  auto kept = parameter;
  auto objective = [&](double step) {
    for (size_t i = 0; i < kept.size(); ++i) parameter[i] = kept[i] + step * direction[i];
    return model.run(c.batch, options, frozen).objective;
  };
  constexpr double h = 1e-4;  // truncation goes with h⁴, rounding with 1e-16 / h: both below 1e-9 here
  double near = (objective(h) - objective(-h)) / (2 * h), far = (objective(2 * h) - objective(-2 * h)) / (4 * h);
  parameter = kept;
  return (4 * near - far) / 3;
}

// Random directions, so that every element takes part; and a few single elements, so that it shows which tensor's order
// is wrong.
std::vector<std::vector<double>> directions(size_t n, unsigned seed) {
  std::vector<std::vector<double>> all;
  for (unsigned i = 0; i < 3; ++i) {
    all.push_back(noise<double>(n, seed + i));
    double length = norm(all.back());
    for (double& x : all.back()) x /= length;
  }
  for (size_t i : {size_t(0), n / 3, n - 1}) {
    all.emplace_back(n);
    all.back()[i] = 1;
  }
  return all;
}

TEST_P(Gradients, MeetCentralDifferences) {
  const Case& c = GetParam();
  Model<double> model = random_model<double>(c.config);
  Result<double> result = model.run(c.batch, c.options);
  const auto* frozen = c.options.gradient == GradientMode::through ? nullptr : &result.carried;
  unsigned seed = 100;
  for (auto& [name, parameter] : model.parameters) {
    const std::vector<double>& gradient = model.gradients[name];
    bool fused = c.batch.passes > 1 && c.name != "AllPrefix";
    bool used = fused || (name.find("latent_feedback") == std::string::npos &&
                          (name != "model.input_norm.weight" || c.config.plain_input == PlainInput::normed));
    EXPECT_EQ(norm(gradient) > 1e-6, used) << name << " has a gradient of norm " << norm(gradient);
    for (const auto& direction : directions(parameter.size(), seed += 10))
      EXPECT_NEAR(weighted(direction, gradient), slope(model, parameter, direction, c, frozen),
                  1e-7 * norm(gradient) + 1e-11)
          << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Gradients, testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return info.param.name; });

// --- Identities ----------------------------------------------------------------------------------------------------

TEST(Reference, OnePassIgnoresTheFeedbackParameters) {
  ModelConfig without = small_config();
  without.fusion = Fusion::none;
  Model<float> model = random_model<float>(small_config()), bare(without);
  for (auto& [name, parameter] : bare.parameters) parameter = model.parameters[name];
  auto a = model.run(packed_batch(1)), b = bare.run(packed_batch(1));
  EXPECT_SAME_BITS(a.states[0], b.states[0]);
  EXPECT_SAME_BITS(a.row_loss[0], b.row_loss[0]);
  for (auto& [name, gradient] : bare.gradients) EXPECT_SAME_BITS(model.gradients[name], gradient) << name;
}

template <class T>
std::vector<T> first_rows(const std::vector<T>& v, int rows, int width) {
  return {v.begin(), v.begin() + size_t(rows) * width};
}

TEST(Reference, FusedPassesReachTheRecurrenceOnePositionAPass) {
  for (Fusion fusion : {Fusion::gate, Fusion::concat, Fusion::add})
    for (PlainInput plain : {PlainInput::normed, PlainInput::raw}) {
      ModelConfig config = small_config();
      config.fusion = fusion, config.plain_input = plain, config.window = 4, config.head_gate = true;
      int T = 6, D = config.width;
      Model<float> model = random_model<float>(config);
      Batch batch = one_document(T, T, 1);
      auto exact = model.recurrence(batch.tokens);
      auto passes = model.run(batch);
      for (int k = 1; k <= T; ++k)
        EXPECT_SAME_BITS(first_rows(passes.states[k - 1], k, D), first_rows(exact, k, D)) << "pass " << k;
      EXPECT_NE(passes.states[1], exact);
    }
}

TEST(Reference, ReusingThePrefixChangesNothing) {
  for (GradientMode mode : {GradientMode::through, GradientMode::detach, GradientMode::last})
    for (Fusion fusion : {Fusion::gate, Fusion::concat, Fusion::add})
      for (PlainInput plain : {PlainInput::normed, PlainInput::raw}) {
        ModelConfig config = small_config();
        config.fusion = fusion, config.plain_input = plain;
        Batch batch = packed_batch(3);
        Options reused, full;
        reused.jitter = full.jitter = 0.1f, reused.gradient = full.gradient = mode, full.reuse = false;
        reused.z_loss = full.z_loss = 0.01f, reused.lambda = full.lambda = 0.7;
        Model<float> a = random_model<float>(config), b = a;
        auto x = a.run(batch, reused), y = b.run(batch, full);
        for (int k = 0; k < 3; ++k) {
          EXPECT_SAME_BITS(x.states[k], y.states[k]) << "pass " << k + 1;
          EXPECT_SAME_BITS(x.row_loss[k], y.row_loss[k]) << "pass " << k + 1;
        }
        Model<double> c = random_model<double>(config), d = c;
        EXPECT_NEAR(c.run(batch, reused).objective, d.run(batch, full).objective, 1e-13);
        for (auto& [name, gradient] : c.gradients) {
          EXPECT_LT(relative_error(gradient, d.gradients[name]), 1e-12) << name;
          EXPECT_LT(relative_error(a.gradients[name], b.gradients[name]), 1e-5) << name;
        }
      }
}

TEST(Reference, NothingCrossesSegments) {
  Model<float> model = random_model<float>(small_config());
  Batch batch = packed_batch(3);
  batch.prefix = {{1, 1, 1}, {1, 1, 1}};
  Options options;
  options.jitter = 0.02f;
  auto before = model.run(batch, options);
  batch.tokens[6] = (batch.tokens[6] + 1) % 11;  // the last row of the first document
  batch.tokens[7] = (batch.tokens[7] + 1) % 11;  // the second document
  auto after = model.run(batch, options);
  Batch third = batch;
  third.tokens.erase(third.tokens.begin(), third.tokens.begin() + 8);
  third.targets.erase(third.targets.begin(), third.targets.begin() + 8);
  third.lengths = {5}, third.prefix = {{1}, {1}}, third.first_segment = 2;
  auto alone = model.run(third, options);
  auto rows = [](const std::vector<float>& states, int from, int to) {
    return std::vector<float>(states.begin() + from * 8, states.begin() + to * 8);
  };
  for (int k = 0; k < 3; ++k) {
    EXPECT_SAME_BITS(rows(after.states[k], 0, 6), rows(before.states[k], 0, 6));
    EXPECT_NE(rows(after.states[k], 6, 8), rows(before.states[k], 6, 8));
    EXPECT_SAME_BITS(rows(after.states[k], 8, 13), rows(before.states[k], 8, 13));
    EXPECT_SAME_BITS(alone.states[k], rows(before.states[k], 8, 13));
  }
}

TEST(Reference, PassTwosLossReachesTheStatesItCarries) {
  int T = 6, D = 8, p = 3;
  for (GradientMode mode : {GradientMode::through, GradientMode::detach}) {
    Model<double> model = random_model<double>(small_config());
    Options options;
    options.gradient = mode, options.pass_weight[0] = 0;
    auto result = model.run(one_document(T, 2, p), options);
    for (int t = 0; t < T; ++t) {  // rows before p have a loss of their own, as pass 2's prefix
      bool carried = t >= p - 1 && t < T - 1, prefix = t < p;
      double size = norm({&result.state_gradients[0][t * D], &result.state_gradients[0][t * D] + D});
      EXPECT_EQ(size > 1e-9, prefix || (carried && mode == GradientMode::through)) << "row " << t << ": " << size;
    }
    EXPECT_GT(norm(model.gradients["latent_feedback.value.weight"]), 1e-6);
  }
}

TEST(Reference, OnlyTheLastPassIsTrainedInModeLast) {
  Model<double> model = random_model<double>(small_config());
  Options options;
  options.gradient = GradientMode::last;
  auto result = model.run(packed_batch(3), options);
  EXPECT_EQ(norm(result.state_gradients[0]), 0);
  EXPECT_EQ(norm(result.state_gradients[1]), 0);
  EXPECT_GT(norm(result.state_gradients[2]), 0);
  EXPECT_NEAR(result.objective, result.loss[2], 1e-13);
}

TEST(Reference, ObjectiveIsTheFirstLossAndTheMeanOfTheOthers) {
  Options options;
  options.lambda = 0.7, options.z_loss = 0.01f;
  for (bool reuse : {true, false}) {
    options.reuse = reuse;
    Model<double> model = random_model<double>(small_config());
    auto result = model.run(packed_batch(3), options);
    double want = 0, share[] = {1, 0.35, 0.35};
    for (int k = 0; k < 3; ++k) {
      want += share[k] * result.loss[k];
      for (double z : result.z_squared[k]) want += share[k] * double(options.z_loss) * z / 11;  // 13 rows, 2 masked
      EXPECT_EQ(result.row_loss[k][1], 0) << "masked";
    }
    EXPECT_NEAR(result.objective, want, 1e-13);
  }
}

TEST(Reference, MicroBatchesAddUp) {
  Batch whole = packed_batch(2), first = whole, second = whole;
  first.tokens.resize(8), first.targets.resize(8), first.lengths = {7, 1}, first.prefix = {{3, 1}};
  second.tokens.assign(whole.tokens.begin() + 8, whole.tokens.end());
  second.targets.assign(whole.targets.begin() + 8, whole.targets.end());
  second.lengths = {5}, second.prefix = {{2}}, second.first_segment = 2, whole.prefix = {{3, 1, 2}};
  Options options;
  options.step_targets = 11, options.jitter = 0.02f;
  Model<double> together = random_model<double>(small_config()), parts = together;
  double objective = together.run(whole, options).objective;
  EXPECT_NEAR(parts.run(first, options).objective + parts.run(second, options).objective, objective, 1e-13);
  for (auto& [name, gradient] : together.gradients)
    EXPECT_LT(relative_error(parts.gradients[name], gradient), 1e-12) << name;
}

TEST(Reference, JitterIsDrawnAfreshForEachStepPassAndPosition) {
  Model<float> model = random_model<float>(small_config());
  Batch batch = one_document(6, 3, 1);
  Options options;
  auto still = model.run(batch, options);
  options.jitter = 0.02f;
  auto moved = model.run(batch, options), again = model.run(batch, options);
  options.step = 1;
  auto later = model.run(batch, options);
  EXPECT_SAME_BITS(moved.carried[0], again.carried[0]);
  EXPECT_NE(moved.carried[0], later.carried[0]);
  std::vector<float> noise;
  for (size_t i = 0; i < still.carried[0].size(); ++i) noise.push_back(moved.carried[0][i] - still.carried[0][i]);
  for (float x : noise) EXPECT_LE(std::abs(x), 0.0201f);
  EXPECT_NE(first_rows(noise, 1, 8), std::vector<float>(noise.begin() + 8, noise.begin() + 16));
}

TEST(Reference, AWindowLimitsWhatAStateSees) {
  ModelConfig config = small_config();
  config.window = 2;
  for (int every : {0, 2}) {
    config.full_attention_every = every;
    Model<float> model = random_model<float>(config);
    Batch batch = one_document(7, 1, 1);
    auto before = model.run(batch);
    batch.tokens[1] = (batch.tokens[1] + 1) % 11;
    auto after = model.run(batch);
    for (int t = 0; t < 7;
         ++t) {  // two layers of window 2 see two rows back; with the second full, every later row sees it
      bool sees = t >= 1 && (every ? true : t <= 3);
      bool changed = false;
      for (int i = 0; i < 8; ++i) changed |= after.states[0][t * 8 + i] != before.states[0][t * 8 + i];
      EXPECT_EQ(changed, sees) << t;
    }
  }
}

TEST(Reference, FloatFollowsDouble) {
  ModelConfig config = small_config();
  config.head_gate = config.branch_norm = true;
  Model<double> exact = random_model<double>(config);
  Model<float> rounded = random_model<float>(config);
  for (auto& [name, parameter] : exact.parameters)
    parameter.assign(rounded.parameters[name].begin(), rounded.parameters[name].end());
  Options options;
  options.jitter = 0.02f, options.z_loss = 0.01f;
  auto want = exact.run(packed_batch(3), options);
  auto got = rounded.run(packed_batch(3), options);
  EXPECT_NEAR(got.objective, want.objective, 1e-5);
  for (auto& [name, gradient] : exact.gradients) {
    std::vector<double> wide(rounded.gradients[name].begin(), rounded.gradients[name].end());
    EXPECT_LT(relative_error(wide, gradient), 2e-5) << name;
  }
}

}  // namespace
