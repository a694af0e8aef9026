// The eight identities of docs/model.md, on the engine.
#include "bytes.h"
#include "engine.h"
#include "generate.h"

namespace {

std::vector<float> first_rows(const std::vector<float>& matrix, int rows, int width) {
  return {matrix.begin(), matrix.begin() + size_t(rows) * width};
}

double norm(const float* x, size_t n) {
  double square = 0;
  for (size_t i = 0; i < n; ++i) square += double(x[i]) * double(x[i]);
  return std::sqrt(square);
}

double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0;
  for (size_t i = 0; i < got.size(); ++i) error += std::pow(double(got[i]) - double(want[i]), 2);
  return error == 0 ? 0 : std::sqrt(error) / norm(want.data(), want.size());
}

// 1
TEST(Identities, OnePassWithTheFeedbackParametersPresentIsTheModelWithoutThem) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    ModelConfig bare = config;
    bare.fusion = Fusion::none;
    Model with(config), without(bare);
    fill_with_noise(with);
    for (const Param& p : without.layout.params) {
      std::vector<float> values = tensor(with.block.data(), *with.layout.find(p.name));
      std::copy(values.begin(), values.end(), without.block.data() + p.offset);
    }
    Batch batch = random_batch({7, 1, 5}, config.vocab, 2);
    EngineRun a(cpu_kernels(), with, batch, 1), b(cpu_kernels(), without, batch, 1);
    for (EngineRun* run : {&a, &b}) {
      run->forward(plan_passes(batch, 1, {}, {}, 3, 0, batch.target_count()));
      run->backward(0.01f);
    }
    EXPECT_SAME_BITS(a.states(1), b.states(1));
    EXPECT_SAME_BITS(a.row_losses(1), b.row_losses(1));
    for (const Param& p : with.layout.params) {
      std::vector<float> gradient = tensor(a.gradients.data(), p);
      std::vector<float> none(p.size());
      EXPECT_SAME_BITS(gradient, p.feedback ? none : tensor(b.gradients.data(), *without.layout.find(p.name)))
          << p.name;
    }
  }
}

// 2
TEST(Identities, FusedPassesReachTheExactRecurrenceOnePositionAPassAndEverywhereAfterT) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    Model model(config);
    fill_with_noise(model);
    int T = 8, D = config.width;
    Batch batch = random_batch({T}, config.vocab, 3);
    Decoder decoder(cpu_kernels(), config, model.params, {});
    std::vector<float> exact;
    for (int t = 0; t < T; ++t) {
      if (t == 0)
        decoder.prefill({{batch.tokens[0]}}, DecodeMode::sequential);
      else
        decoder.advance({0}, {batch.tokens[t]});
      exact.insert(exact.end(), decoder.carry(0), decoder.carry(0) + D);
    }
    EXPECT_SAME_BITS(exact, reference_of(model).recurrence(batch.tokens));
    EngineRun run(cpu_kernels(), model, batch, T);
    run.forward(plan_passes(batch, T, fully_fused(batch, T), {.jitter = 0}, 1, 0, T));
    for (int k = 1; k <= T; ++k) {
      EXPECT_SAME_BITS(first_rows(run.states(k), k, D), first_rows(exact, k, D)) << "pass " << k;
      EXPECT_EQ(run.states(k) == exact, k == T) << "pass " << k;
    }
  }
}

// 3
TEST(Identities, PrefillThenDecodeEqualsOneLongForwardPass) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    Model model(config);
    fill_with_noise(model);
    int T = 8, D = config.width;
    Batch batch = random_batch({T}, config.vocab, 4);
    EngineRun run(cpu_kernels(), model, batch, 1);
    run.forward(plan_passes(batch, 1, {}, {}, 1, 0, T));
    std::vector<float> states = run.states(1);
    Decoder decoder(cpu_kernels(), config, model.params, {});
    for (int prompt = 1; prompt <= T; ++prompt) {
      decoder.prefill({{batch.tokens.begin(), batch.tokens.begin() + prompt}}, DecodeMode::standard);
      for (int t = prompt - 1; t < T; ++t) {
        if (t >= prompt) decoder.advance({0}, {batch.tokens[t]});
        EXPECT_SAME_BITS(std::vector<float>(decoder.carry(0), decoder.carry(0) + D), row_of(states, t, D))
            << "prompt of " << prompt << ", position " << t;
      }
    }
  }
}

// 4
TEST(Identities, SoftsFirstSampledTokenIsStandardsAtTheSameSeedAndOnlyLaterOnesDiffer) {
  ModelConfig config = tiny_config();
  config.vocab = kByteVocab, config.context = 24;
  Model model(config);
  fill_with_noise(model);
  Decoder decoder(cpu_kernels(), config, model.params, {});
  int differ = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::string said[2];
    for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft}) {
      Generation g;
      g.mode = mode, g.tokens = 10, g.seed = seed;
      generate(
          decoder, Tokenizer(), {encode("a prompt")}, 0, g,
          [&](int, const std::string& text) { said[int(mode)] += text; }, [] { return false; });
    }
    EXPECT_EQ(said[0].substr(0, 1), said[1].substr(0, 1)) << "seed " << seed;
    differ += said[0] != said[1];
  }
  EXPECT_GT(differ, 10);
}

// 5
TEST(Identities, FeedbackNeverCrossesTheStartOfASegment) {
  Model model(tiny_config());
  fill_with_noise(model);
  int D = model.config.width;
  Batch batch = random_batch({7, 1, 5}, 11, 5), changed = batch, alone = random_batch({5}, 11, 6);
  changed.tokens[6] = (changed.tokens[6] + 1) % 11;  // the first document's last row
  changed.tokens[7] = (changed.tokens[7] + 1) % 11;  // the second document
  alone.tokens.assign(batch.tokens.begin() + 8, batch.tokens.end());
  EngineRun before(cpu_kernels(), model, batch, 3), after(cpu_kernels(), model, changed, 3),
      third(cpu_kernels(), model, alone, 3);
  before.forward(plan_passes(batch, 3, fully_fused(batch, 3), {}, 1, 0, 13));
  after.forward(plan_passes(changed, 3, fully_fused(changed, 3), {}, 1, 0, 13));
  third.forward(plan_passes(alone, 3, fully_fused(alone, 3), {}, 1, 2, 13));
  for (int k = 1; k <= 3; ++k) {
    std::vector<float> a = before.states(k), b = after.states(k);
    for (int row = 0; row < 13; ++row)
      EXPECT_EQ(row_of(a, row, D) == row_of(b, row, D), row != 6 && row != 7) << "pass " << k << ", row " << row;
    EXPECT_SAME_BITS(third.states(k), std::vector<float>(a.begin() + 8 * D, a.end()));
  }
}

// 6
TEST(Identities, WithOnlyPassTwosLossTheStatesItFusesFromGetAGradientUnlessDetached) {
  int T = 8, p = 3;
  for (auto [name, config] : tiny_configs())
    for (GradientMode gradient : {GradientMode::through, GradientMode::detach}) {
      SCOPED_TRACE(name + ", " + name_of(gradient));
      Model model(config);
      fill_with_noise(model);
      Batch batch = random_batch({T}, config.vocab, 7, 0);
      EngineRun run(cpu_kernels(), model, batch, 2);
      PassPlan plan = plan_passes(batch, 2, {{p}}, {.gradient = gradient}, 1, 0, T);
      std::fill(plan.passes[0].weight.begin(), plan.passes[0].weight.end(), 0.0f);
      run.forward(plan);
      run.backward();
      for (int t = 0; t < T; ++t) {
        // Pass 2 fuses rows p … T − 1 from the states before them.
        bool flows = t >= p - 1 && t < T - 1 && gradient == GradientMode::through;
        double size = norm(run.runner.dh(t), config.width);
        EXPECT_TRUE(flows ? size > 1e-6 : size == 0) << "row " << t << ": " << size;
      }
    }
}

// 6: a detached state is cut from the carry alone; the keys and values of the prefix still get their gradient. Where
// each row sees itself only, there is no such way, and detached passes leave nothing to go back through pass 1.
TEST(Identities, WithOnlyPassTwosLossADetachedPrefixStillGetsTheGradientOfItsKeysAndValues) {
  for (int window : {0, 1})
    for (GradientMode gradient : {GradientMode::through, GradientMode::detach}) {
      ModelConfig config = tiny_config();
      config.window = window;
      Model model(config);
      fill_with_noise(model);
      Batch batch = random_batch({8}, config.vocab, 7, 0);
      EngineRun whole(cpu_kernels(), model, batch, 2), cut(cpu_kernels(), model, batch, 2);
      for (EngineRun* run : {&whole, &cut}) {
        PassPlan plan = plan_passes(batch, 2, {{3}}, {.gradient = gradient}, 1, 0, 8);
        std::fill(plan.passes[0].weight.begin(), plan.passes[0].weight.end(), 0.0f);
        plan.passes[0].trained = run == &whole;
        run->forward(plan);
        run->backward();
      }
      const Param& value = *model.layout.find("model.layers.0.self_attn.v_proj.weight");
      std::vector<float> a = tensor(whole.gradients.data(), value), b = tensor(cut.gradients.data(), value);
      bool reaches = window == 0 || gradient == GradientMode::through;
      double error = relative_error(a, b);
      EXPECT_TRUE(reaches ? error > 1e-3 : error == 0)
          << "window " << window << ", " << name_of(gradient) << ": " << error;
    }
}

// 7
TEST(Identities, ReusingThePrefixGivesTheLossesAndGradientsOfComputingItAgain) {
  for (auto [name, config] : tiny_configs())
    for (GradientMode gradient : {GradientMode::through, GradientMode::detach, GradientMode::last}) {
      SCOPED_TRACE(name + ", " + name_of(gradient));
      Model model(config);
      fill_with_noise(model);
      Batch batch = random_batch({7, 1, 8, 5}, config.vocab, 8);
      auto prefix = random_prefixes(batch, 3, 9);
      EngineRun reused(cpu_kernels(), model, batch, 3), full(cpu_kernels(), model, batch, 3);
      for (EngineRun* run : {&reused, &full}) {
        PassOptions options = {.lambda = 0.7f, .gradient = gradient, .reuse_prefix = run == &reused};
        run->forward(plan_passes(batch, 3, prefix, options, 1, 0, batch.target_count()));
        run->backward(0.01f);
      }
      EXPECT_LT(reused.plan.rows(), full.plan.rows());
      for (int k = 1; k <= 3; ++k) {
        EXPECT_SAME_BITS(reused.states(k), full.states(k)) << "pass " << k;
        EXPECT_SAME_BITS(reused.row_losses(k), full.row_losses(k)) << "pass " << k;
      }
      EXPECT_SAME_BITS(reused.losses.loss, full.losses.loss);
      for (const Param& p : model.layout.params)
        EXPECT_LT(relative_error(tensor(reused.gradients.data(), p), tensor(full.gradients.data(), p)), 1e-5) << p.name;
    }
}

// 8
// The engine computes in float; so its gradients are held against central differences of the reference's double
// objective, which has the same weights.
void expect_gradients_of_the_objective(const ModelConfig& config, int passes, GradientMode gradient) {
  SCOPED_TRACE(testing::Message() << passes << " passes, " << name_of(gradient));
  Model model(config);
  fill_with_noise(model);
  Batch batch = random_batch({7, 1, 5}, config.vocab, 10);
  auto prefix = random_prefixes(batch, passes, 11);
  PassOptions options = {.lambda = 0.7f, .gradient = gradient, .jitter = 0.1f, .seed = 3};
  EngineRun run(cpu_kernels(), model, batch, passes);
  run.forward(plan_passes(batch, passes, prefix, options, 2, 0, batch.target_count()));
  run.backward(0.01f);

  reference::Model<double> exact = reference_of<double>(model);
  reference::Batch rows = reference_batch(batch, passes, prefix);
  reference::Options o;
  o.lambda = double(options.lambda), o.jitter = options.jitter, o.seed = 3, o.step = 2, o.z_loss = 0.01f;
  o.gradient = reference::GradientMode(gradient), o.backward = false;
  auto carried = exact.run(rows, o).carried;
  const auto* frozen = gradient == GradientMode::through ? nullptr : &carried;
  for (const Param& p : model.layout.params) {
    std::vector<double>& values = exact.parameters.at(p.name);
    std::vector<double> kept = values;
    const float* slopes = run.gradients.data() + p.offset;
    double size = norm(slopes, p.size());
    for (unsigned seed : {1, 2}) {
      std::vector<double> direction = noise<double>(p.size(), seed);
      double length = 0, want, got = 0;
      for (double x : direction) length += x * x;
      length = std::sqrt(length);
      auto at = [&](double step) {
        for (size_t i = 0; i < kept.size(); ++i) values[i] = kept[i] + step * direction[i] / length;
        return exact.run(rows, o, frozen).objective;
      };
      constexpr double h = 1e-4;
      want = (4 * (at(h) - at(-h)) / (2 * h) - (at(2 * h) - at(-2 * h)) / (4 * h)) / 3;
      values = kept;
      for (size_t i = 0; i < kept.size(); ++i) got += double(slopes[i]) * direction[i] / length;
      EXPECT_NEAR(got, want, 1e-5 * size + 1e-9) << p.name;
    }
  }
}

TEST(Identities, EveryParametersGradientAgreesWithCentralDifferences) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    bool all = name == "gate" || name == "concat" || name == "add";
    for (int passes = all ? 1 : 3; passes <= 3; ++passes)
      expect_gradients_of_the_objective(config, passes, GradientMode::through);
    if (!all) continue;
    expect_gradients_of_the_objective(config, 3, GradientMode::detach);
    expect_gradients_of_the_objective(config, 3, GradientMode::last);
  }
}

}  // namespace
