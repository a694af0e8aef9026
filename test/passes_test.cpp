// Training in passes: every state, loss and gradient of the engine against the reference, bit for bit; the plan of a
// batch's passes; how prefixes and the number of passes are drawn.
#include "passes.h"

#include <ostream>
#include <set>

#include "engine.h"
#include "scratch.h"

namespace {

// --- The engine against the reference ------------------------------------------------------------------------------

struct Case {
  std::string name;
  ModelConfig config = tiny_config();
  std::vector<int> lengths = {7, 1, 5};
  int passes = 3;
  PassOptions options = {.lambda = 0.7f, .seed = 9};
  float z_loss = 0;
  std::vector<std::vector<int>> prefix = {};  // drawn where empty
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

reference::Options reference_options(const Case& c, int64_t step, int64_t step_targets) {
  reference::Options options;
  options.lambda = double(c.options.lambda), options.jitter = c.options.jitter, options.z_loss = c.z_loss;
  options.gradient = reference::GradientMode(c.options.gradient), options.reuse = c.options.reuse_prefix;
  options.seed = c.options.seed, options.step = int(step), options.step_targets = step_targets;
  return options;
}

// Two micro-batches of one step: the same rows under other segment numbers, whose gradients add up.
void compare_with_reference(const Case& c, const std::vector<const Kernels*>& tables, const std::vector<int>& threads) {
  constexpr int64_t kStep = 4;
  Model model(c.config);
  fill_with_noise(model);
  Batch batch = random_batch(c.lengths, c.config.vocab, 5 + c.passes);
  auto prefix = c.prefix.empty() ? random_prefixes(batch, c.passes, 6) : c.prefix;
  int64_t step_targets = 2 * batch.target_count();
  reference::Model<float> reference = reference_of(model);
  std::vector<reference::Result<float>> want;
  for (int first_segment : {3, 11})
    want.push_back(reference.run(reference_batch(batch, c.passes, prefix, first_segment),
                                 reference_options(c, kStep, step_targets)));

  struct How {
    int threads;
    Recompute recompute;
  };
  std::vector<How> ways = {{2, Recompute::norms}, {2, Recompute::block}};
  for (int t : threads) ways.push_back({t, Recompute::none});
  for (const Kernels* kernels : tables)
    for (auto [t, recompute] : ways) {
      SCOPED_TRACE(c.name + ", " + kernels->name + ", " + std::to_string(t) + " threads, recompute " +
                   name_of(recompute));
      set_threads(t);
      EngineRun run(*kernels, model, batch, c.passes, recompute);
      for (int micro = 0; micro < 2; ++micro) {
        run.forward(plan_passes(batch, c.passes, prefix, c.options, kStep, micro == 0 ? 3 : 11, step_targets));
        run.backward(c.z_loss);
        EXPECT_EQ(run.losses.targets, batch.target_count());
        for (int k = 1; k <= c.passes; ++k) {
          SCOPED_TRACE("pass " + std::to_string(k));
          EXPECT_SAME_BITS(run.states(k), want[micro].states[k - 1]);
          EXPECT_SAME_BITS(run.row_losses(k), want[micro].row_loss[k - 1]);
          double loss = 0, z_squared = 0;
          for (double x : want[micro].row_loss[k - 1]) loss += x;
          for (double x : want[micro].z_squared[k - 1]) z_squared += x;
          EXPECT_EQ(run.losses.loss[k - 1], loss);
          EXPECT_EQ(run.losses.z_squared[k - 1], z_squared);
          if (!run.plan.passes[k - 1].trained) continue;
          EXPECT_SAME_BITS(run.state_gradients(k), want[micro].state_gradients[k - 1]);
        }
      }
      for (const Param& p : model.layout.params)
        EXPECT_SAME_BITS(tensor(run.gradients.data(), p), reference.gradients.at(p.name)) << p.name;
    }
  set_threads(0);
}

Case with(std::string name, void (*change)(Case&)) {
  Case c;
  c.name = name;
  change(c);
  return c;
}

std::vector<Case> cases() {
  using enum GradientMode;
  return {
      with("OnePass", [](Case& c) { c.passes = 1; }),
      with("TwoPasses", [](Case& c) { c.passes = 2; }),
      with("ThreePasses", [](Case&) {}),
      with("FourPasses", [](Case& c) { c.passes = 4; }),
      with("AllPrefix",
           [](Case& c) {
             c.prefix = {{7, 1, 5}, {7, 1, 5}};
           }),
      with("AllFused",
           [](Case& c) {
             c.prefix = {{1, 1, 1}, {1, 1, 1}};
           }),
      with("LongerPrefixLater",
           [](Case& c) {
             c.prefix = {{2, 1, 1}, {7, 1, 4}};
           }),
      with("SecondPassOfOneDocumentAlone",
           [](Case& c) {
             c.prefix = {{7, 1, 2}, {7, 1, 5}};
           }),
      with("WithoutReuse", [](Case& c) { c.options.reuse_prefix = false; }),
      with("WithoutJitter", [](Case& c) { c.options.jitter = 0; }),
      with("OneToken", [](Case& c) { c.lengths = {1}; }),
      with("OneDocument",
           [](Case& c) {
             c.lengths = {8}, c.prefix = {{1}, {3}};
           }),
      with("Concat", [](Case& c) { c.config.fusion = Fusion::concat; }),
      with("ConcatWithoutReuse", [](Case& c) { c.config.fusion = Fusion::concat, c.options.reuse_prefix = false; }),
      with("Add", [](Case& c) { c.config.fusion = Fusion::add; }),
      with("None", [](Case& c) { c.config.fusion = Fusion::none, c.passes = 1; }),
      with("Window", [](Case& c) { c.config.window = 2, c.config.full_attention_every = 2; }),
      with("WindowEverywhere", [](Case& c) { c.config.window = 3; }),
      with("EqualHeads", [](Case& c) { c.config.kv_heads = 4; }),
      with("OneKvHead", [](Case& c) { c.config.kv_heads = 1, c.config.head_dim = 2; }),
      with("HeadGate", [](Case& c) { c.config.head_gate = true; }),
      with("BranchNorm", [](Case& c) { c.config.branch_norm = true; }),
      with("HeadGateAndBranchNorm", [](Case& c) { c.config.head_gate = c.config.branch_norm = true; }),
      with("RawInput", [](Case& c) { c.config.plain_input = PlainInput::raw; }),
      with("RawInputOnePass", [](Case& c) { c.config.plain_input = PlainInput::raw, c.passes = 1; }),
      with("RawInputAdd", [](Case& c) { c.config.plain_input = PlainInput::raw, c.config.fusion = Fusion::add; }),
      with("ZLoss", [](Case& c) { c.z_loss = 0.05f; }),
      with("LambdaZero", [](Case& c) { c.options.lambda = 0; }),
      with("Detach", [](Case& c) { c.options.gradient = detach; }),
      with("DetachWithoutReuse", [](Case& c) { c.options.gradient = detach, c.options.reuse_prefix = false; }),
      with("DetachConcat", [](Case& c) { c.options.gradient = detach, c.config.fusion = Fusion::concat; }),
      with("DetachAdd", [](Case& c) { c.options.gradient = detach, c.config.fusion = Fusion::add; }),
      with("Last", [](Case& c) { c.options.gradient = last; }),
      with("LastOfTwo", [](Case& c) { c.options.gradient = last, c.passes = 2; }),
      with("LastOfOne", [](Case& c) { c.options.gradient = last, c.passes = 1; }),
      with("LastRawZLoss",
           [](Case& c) { c.options.gradient = last, c.z_loss = 0.05f, c.config.plain_input = PlainInput::raw; }),
  };
}

class Engine : public testing::TestWithParam<Case> {};

TEST_P(Engine, HasTheReferencesBits) { compare_with_reference(GetParam(), every_table(), {1, 3}); }

INSTANTIATE_TEST_SUITE_P(Cases, Engine, testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

TEST(EngineSweep, EveryFusionGradientReuseAndNumberOfPassesHasTheReferencesBits) {
  int n = 0;
  for (Fusion fusion : {Fusion::gate, Fusion::concat, Fusion::add})
    for (GradientMode gradient : {GradientMode::through, GradientMode::detach, GradientMode::last})
      for (bool reuse : {true, false})
        for (int passes = 1; passes <= 4; ++passes, ++n) {
          Case c;
          c.name = (testing::Message() << name_of(fusion) << ", " << name_of(gradient) << ", reuse " << reuse << ", "
                                       << passes << " passes, form " << n)
                       .GetString();
          c.config.fusion = fusion, c.options.gradient = gradient, c.options.reuse_prefix = reuse, c.passes = passes;
          c.config.head_gate = n % 2, c.config.branch_norm = n / 2 % 2, c.z_loss = n / 3 % 2 ? 0.01f : 0;
          if (n / 4 % 2) c.config.window = 3, c.config.full_attention_every = 2;
          if (n / 5 % 2) c.config.plain_input = PlainInput::raw;
          c.lengths = {3, 8, 1, 1, 6, 2};
          compare_with_reference(c, every_table(), {1 + n % 3});
        }
}

// Enough rows that threads share the work, that kernels have several tiles, and that the classifier has several chunks.
TEST(EngineSweep, BatchesOfManyRowsHaveTheReferencesBits) {
  Case c;
  c.name = "many rows";
  c.config.vocab = 65, c.config.width = 34, c.config.layers = 1, c.config.head_dim = 10;
  c.config.ffn = 40, c.config.context = 80, c.z_loss = 0.01f, c.config.head_gate = true;
  c.lengths = {60, 1, 33, 20, 17, 80, 80, 40};
  for (int variant = 0; variant < 3; ++variant) {
    c.config.fusion = Fusion(1 + variant), c.options.gradient = GradientMode(variant), c.passes = 2 + variant % 2;
    c.config.window = variant == 1 ? 24 : 0;
    compare_with_reference(c, every_table(), {1, 2, 3});
  }
}

TEST(EngineSweep, ARunnerServesBatchesOfEverySize) {
  Model model(tiny_config());
  fill_with_noise(model);
  Batch large = random_batch({8, 8, 5}, 11, 1), small = random_batch({2}, 11, 2);
  PassOptions options;
  auto result = [&](EngineRun& run, const Batch& batch, int passes) {
    cpu_kernels().zero(run.gradients.data(), int64_t(run.gradients.size()));
    PassLosses losses;
    PassPlan plan = plan_passes(batch, passes, fully_fused(batch, passes), options, 1, 0, batch.target_count());
    run.runner.forward(model.params, batch, plan);
    run.runner.backward(model.params, run.views, batch, plan, 0, losses);
    return std::vector<float>(run.gradients.data(), run.gradients.data() + run.gradients.size());
  };
  EngineRun used(cpu_kernels(), model, large, 3), fresh_small(cpu_kernels(), model, small, 2),
      fresh_large(cpu_kernels(), model, large, 3);
  auto first = result(used, large, 3);
  EXPECT_SAME_BITS(result(used, small, 2), result(fresh_small, small, 2));
  EXPECT_SAME_BITS(result(used, large, 3), first);
  EXPECT_SAME_BITS(result(fresh_large, large, 3), first);
}

// The reference's objective is the one whose central differences its gradients are.
TEST(ObjectiveOf, IsTheReferencesZLossIncluded) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Model model(c.config);
    fill_with_noise(model);
    Batch batch = random_batch(c.lengths, c.config.vocab, 5 + c.passes);
    auto prefix = c.prefix.empty() ? random_prefixes(batch, c.passes, 6) : c.prefix;
    EngineRun run(cpu_kernels(), model, batch, c.passes);
    run.forward(plan_passes(batch, c.passes, prefix, c.options, 4, 0, batch.target_count()));
    run.backward(c.z_loss);
    double want = reference_of<double>(model)
                      .run(reference_batch(batch, c.passes, prefix), reference_options(c, 4, batch.target_count()))
                      .objective;
    Objective got = objective_of(run.losses, c.options, c.z_loss);
    EXPECT_NEAR(got.total(), want, 1e-5 * want);
    EXPECT_EQ(got.z_loss > 0, c.z_loss > 0);
    EXPECT_EQ(got.total(), got.loss + got.z_loss);
  }
}

TEST(ObjectiveOf, IsWhatTheGradientIsOf) {
  constexpr float kZLoss = 0.05f, kStep = 1e-3f;
  Model model(tiny_config());
  fill_with_noise(model);
  Batch batch = random_batch({7, 1, 5}, model.config.vocab, 8);
  PassOptions options = {.lambda = 0.7f};
  PassPlan plan = plan_passes(batch, 3, fully_fused(batch, 3), options, 4, 0, batch.target_count());
  EngineRun run(cpu_kernels(), model, batch, 3);
  auto objective = [&] {
    run.forward(plan);
    run.backward(kZLoss);
    return objective_of(run.losses, options, kZLoss).total();
  };
  objective();
  std::vector<float> start(model.block.data(), model.block.data() + model.block.size()),
      g(run.gradients.data(), run.gradients.data() + run.gradients.size());
  auto moved = [&](float step) {
    for (size_t i = 0; i < g.size(); ++i) model.block.data()[i] = start[i] + step * g[i];
    return objective();
  };
  double square = 0, slope = (moved(kStep) - moved(-kStep)) / (2 * double(kStep));
  for (float x : g) square += double(x) * double(x);
  EXPECT_NEAR(slope, square, 2e-3 * square);
}

TEST(EngineSweep, PassesWithoutWeightInTheObjectiveTakeNoPartInTheBackwardPass) {
  Batch batch = random_batch({7, 1, 5}, 11, 3);
  auto trained = [&](PassOptions options, int passes) {
    std::vector<bool> out;
    PassPlan plan = plan_passes(batch, passes, fully_fused(batch, passes), options, 1, 0, batch.target_count());
    for (const Pass& pass : plan.passes) out.push_back(pass.trained);
    EXPECT_EQ(plan.trains_feedback(), passes > 1 && out.back());
    EXPECT_EQ(plan.fuses(), passes > 1);
    return out;
  };
  EXPECT_EQ(trained({.lambda = 1}, 3), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(trained({.lambda = 0}, 3), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(trained({.lambda = 0, .gradient = GradientMode::last}, 3), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(trained({.lambda = 0}, 1), (std::vector<bool>{true}));
  PassPlan all_plain = plan_passes(batch, 2, {{7, 1, 5}}, {}, 1, 0, batch.target_count());
  EXPECT_FALSE(all_plain.fuses() || all_plain.trains_feedback()) << "no row is fused";
}

TEST(EngineSweep, ABatchWithoutTargetsHasNoGradient) {
  Model model(tiny_config());
  fill_with_noise(model);
  Batch batch = random_batch({5, 3}, 11, 1);
  std::fill(batch.targets.begin(), batch.targets.end(), -1);
  EngineRun run(cpu_kernels(), model, batch, 2);
  run.forward(plan_passes(batch, 2, fully_fused(batch, 2), {}, 1, 0, 0));
  run.backward(0.01f);
  EXPECT_EQ(run.losses.targets, 0);
  EXPECT_EQ(run.losses.mean(0), 0);
  for (size_t i = 0; i < run.gradients.size(); ++i) ASSERT_EQ(run.gradients.data()[i], 0) << i;
}

TEST(PassMemory, IsWhatThePlanSays) {
  ModelConfig config = tiny_config();
  Plan one, three;
  PassRunner::plan_memory(one, cpu_kernels(), config, {64, 1});
  PassRunner::plan_memory(three, cpu_kernels(), config, {64, 3});
  ASSERT_EQ(three.bytes.size(), 3u);
  EXPECT_GT(three.total(), 2 * one.total() - 3 * one.bytes[2].second);
  double states = 4.0 * 3 * 64 * config.width;
  EXPECT_GT(three.bytes[0].second, 5 * states) << "activations of all passes";
}

// --- The plan ------------------------------------------------------------------------------------------------------

TEST(PassMemory, IsLessWhereMoreIsComputedAgain) {
  ModelConfig config = tiny_config();
  config.layers = 6;
  auto bytes = [&](Recompute recompute) {
    Plan plan;
    PassRunner::plan_memory(plan, cpu_kernels(), config, {100, 2, recompute});
    return plan.total();
  };
  EXPECT_LT(bytes(Recompute::norms), 0.95 * bytes(Recompute::none));
  EXPECT_LT(bytes(Recompute::block), 0.7 * bytes(Recompute::norms));
}

TEST(PassNames, RecomputeHasTheNamesOfTheFlags) {
  for (Recompute r : {Recompute::none, Recompute::norms, Recompute::block}) EXPECT_EQ(value_named<Recompute>(name_of(r)), r);
  EXPECT_THROW(value_named<Recompute>("all"), Error);
}

TEST(PlanPasses, GivesEachRowItsInputItsStateAndItsKeys) {
  for (bool reuse : {true, false})
    for (GradientMode gradient : {GradientMode::through, GradientMode::last})
      for (unsigned seed = 1; seed <= 5; ++seed) {
        SCOPED_TRACE(testing::Message() << "reuse " << reuse << ", " << name_of(gradient) << ", seed " << seed);
        Batch batch = random_batch({4, 1, 9, 2, 6}, 11, seed);
        auto prefix = random_prefixes(batch, 4, seed);
        PassOptions options = {.gradient = gradient, .reuse_prefix = reuse};
        PassPlan plan = plan_passes(batch, 4, prefix, options, 7, 20, 100);
        ASSERT_EQ(plan.passes.size(), 4u);
        EXPECT_EQ(plan.prefix, prefix);
        int first = 0, first_fused = 0;
        std::set<uint64_t> keys;
        for (int k = 1; k <= 4; ++k) {
          const Pass& pass = plan.passes[k - 1];
          SCOPED_TRACE(testing::Message() << "pass " << k);
          EXPECT_EQ(pass.first, first);
          first += pass.rows;
          std::vector<int> row_at(batch.rows(), -1);  // of pass 1's row: this pass's
          int covered = 0;
          for (const Segment& segment : pass.segments) {
            EXPECT_EQ(segment.row, covered);
            EXPECT_GT(segment.rows, 0);
            for (int i = 0; i < segment.rows; ++i) {
              int token_row = pass.token_row[segment.row + i];
              row_at[token_row] = segment.row + i;
              EXPECT_EQ(pass.state_row[token_row], pass.first + segment.row + i);
              EXPECT_EQ(segment.own_kv + i, pass.first + segment.row + i);
            }
            int document = pass.token_row[segment.row] - segment.position;
            EXPECT_EQ(segment.prefix_kv, document) << "the prefix's keys are pass 1's";
            covered += segment.rows;
          }
          EXPECT_EQ(covered, pass.rows);
          size_t fused = 0, plain = 0;
          for (size_t s = 0; s < batch.segments.size(); ++s)
            for (int t = 0; t < batch.segments[s].rows; ++t) {
              int token_row = batch.segments[s].row + t, p = k == 1 ? batch.segments[s].rows : prefix[k - 2][s];
              bool alone = k == 1 || !reuse || (gradient == GradientMode::last && k == 4);
              if (t < p && !alone) {
                EXPECT_EQ(row_at[token_row], -1) << "computed again";
                EXPECT_EQ(pass.state_row[token_row], token_row);
              } else if (t < p) {
                EXPECT_EQ(pass.input.plain[plain++], row_at[token_row]);
              } else {
                EXPECT_EQ(pass.input.fused[fused], row_at[token_row]);
                EXPECT_EQ(pass.input.fused_token[fused], token_row);
                EXPECT_EQ(pass.input.source[fused], plan.passes[k - 2].state_row[token_row - 1])
                    << "the state before it";
                EXPECT_TRUE(keys.insert(pass.input.noise_key[fused++]).second) << "one jitter for two rows";
              }
            }
          EXPECT_EQ(fused, pass.input.fused.size());
          EXPECT_EQ(plain, pass.input.plain.size());
          if (k > 1) {
            EXPECT_EQ(pass.first_fused, first_fused);
            first_fused += int(fused);
          }
        }
        EXPECT_EQ(plan.rows(), first);
      }
}

TEST(PlanPasses, WeightsAddUpToTheObjective) {
  Batch batch = random_batch({4, 1, 9, 2, 6}, 11, 3);
  int targets = batch.target_count();
  for (int passes = 1; passes <= 4; ++passes)
    for (bool reuse : {true, false})
      for (GradientMode gradient : {GradientMode::through, GradientMode::detach, GradientMode::last}) {
        PassOptions options = {.lambda = 0.5f, .gradient = gradient, .reuse_prefix = reuse};
        PassPlan plan = plan_passes(batch, passes, random_prefixes(batch, passes, 4), options, 1, 0, targets);
        double total = 0;
        for (const Pass& pass : plan.passes)
          for (int row = 0; row < pass.rows; ++row) {
            total += double(pass.weight[row]);
            EXPECT_TRUE(batch.targets[pass.token_row[row]] >= 0 || pass.weight[row] == 0);
          }
        bool last = gradient == GradientMode::last;
        EXPECT_NEAR(total, last || passes == 1 ? 1 : 1.5, 1e-6) << passes << " passes, " << name_of(gradient);
        for (int k = 1; k <= passes; ++k) EXPECT_EQ(plan.passes[k - 1].trained, !last || k == passes);
        EXPECT_EQ(plan.carry_gradient, gradient == GradientMode::through);
      }
}

TEST(PlanPasses, JitterDependsOnSeedStepPassSegmentAndPositionAlone) {
  Batch three = random_batch({5, 4, 6}, 11, 1), last = random_batch({6}, 11, 2);
  auto keys = [](const Batch& batch, PassOptions options, int64_t step, int first_segment) {
    return plan_passes(batch, 3, fully_fused(batch, 3), options, step, first_segment, 1).passes[2].input.noise_key;
  };
  auto all = keys(three, {.seed = 1}, 4, 0);
  std::vector<uint64_t> of_last(all.end() - 5, all.end());
  EXPECT_EQ(keys(last, {.seed = 1}, 4, 2), of_last) << "in another micro-batch";
  EXPECT_NE(keys(last, {.seed = 1}, 4, 1), of_last);
  EXPECT_NE(keys(last, {.seed = 1}, 5, 2), of_last);
  EXPECT_NE(keys(last, {.seed = 2}, 4, 2), of_last);
}

// The mean share of a batch's rows that a two-pass step runs, over many steps.
double rows_of_two_passes(const Batch& batch, PrefixMixin mixin) {
  PassOptions options = {.mixin = mixin};
  double rows = 0;
  for (int64_t step = 0; step < 400; ++step)
    rows += plan_passes(batch, 2, draw_prefixes(batch, 2, options, step, 0), options, step, 0, 1).rows();
  return rows / 400 / batch.rows();
}

TEST(PlanPasses, TwoPassStepsOfUniformMixinRunAtMostThreeFifthsMoreRows) {
  Batch whole = random_batch({64, 64, 64, 64}, 11, 1), packed = random_batch({40, 24, 3, 1, 60, 50, 14}, 11, 1);
  for (const Batch& batch : {whole, packed}) {
    EXPECT_LE(rows_of_two_passes(batch, PrefixMixin::uniform), 1.6);
    EXPECT_GE(rows_of_two_passes(batch, PrefixMixin::uniform), 1.4);
    EXPECT_NEAR(rows_of_two_passes(batch, PrefixMixin::half), 1.75, 0.1);
    EXPECT_NEAR(rows_of_two_passes(batch, PrefixMixin::off), 2, 0.1);  // first rows are not run again
  }
}

// --- Prefixes ------------------------------------------------------------------------------------------------------

std::vector<int> drawn_prefixes(PrefixMixin mixin, int length, int count) {
  Batch batch = random_batch(std::vector<int>(100, length), 11, 1);
  std::vector<int> all;
  for (int64_t step = 0; int(all.size()) < count; ++step) {
    std::vector<int> drawn = draw_prefixes(batch, 2, {.mixin = mixin}, step, 0)[0];
    all.insert(all.end(), drawn.begin(), drawn.end());
  }
  return all;
}

TEST(DrawPrefixes, GiveEveryPassAndSegmentItsOwn) {
  Batch batch = random_batch({7, 1, 30, 64}, 11, 1);
  std::set<std::vector<int>> seen;
  for (int64_t step = 0; step < 50; ++step) {
    auto prefix = draw_prefixes(batch, 4, {.mixin = PrefixMixin::uniform}, step, 0);
    ASSERT_EQ(prefix.size(), 3u);
    for (const auto& of_pass : prefix) {
      ASSERT_EQ(of_pass.size(), 4u);
      for (size_t s = 0; s < 4; ++s) {
        EXPECT_GE(of_pass[s], 1);
        EXPECT_LE(of_pass[s], batch.segments[s].rows);
      }
      seen.insert(of_pass);
    }
  }
  EXPECT_GT(seen.size(), 140u) << "of 150, hardly any are alike";
  EXPECT_TRUE(draw_prefixes(batch, 1, {}, 1, 0).empty());
}

TEST(DrawPrefixes, UniformDrawsEachLengthAlikeOften) {
  std::vector<int> count(9);
  for (int p : drawn_prefixes(PrefixMixin::uniform, 8, 16000)) ++count.at(p);
  for (int p = 1; p <= 8; ++p) EXPECT_NEAR(count[p], 2000, 200) << p;
}

TEST(DrawPrefixes, HalfDrawsOneRowForHalfOfTheSegments) {
  std::vector<int> count(9);
  for (int p : drawn_prefixes(PrefixMixin::half, 8, 16000)) ++count.at(p);
  EXPECT_NEAR(count[1], 9000, 250);
  for (int p = 2; p <= 8; ++p) EXPECT_NEAR(count[p], 1000, 150) << p;
}

TEST(DrawPrefixes, OffDrawsOneRow) {
  for (int p : drawn_prefixes(PrefixMixin::off, 8, 1000)) ASSERT_EQ(p, 1);
}

TEST(DrawPrefixes, DependOnSeedStepPassAndSegmentAlone) {
  Batch many = random_batch(std::vector<int>(40, 60), 11, 1), few = random_batch(std::vector<int>(10, 60), 11, 2);
  PassOptions options = {.mixin = PrefixMixin::uniform, .seed = 5}, other = options;
  other.seed = 6, other.jitter = 0, other.lambda = 3;
  auto all = draw_prefixes(many, 3, options, 12, 0), tail = draw_prefixes(few, 3, options, 12, 30);
  auto more = draw_prefixes(many, 4, options, 12, 0);
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(tail[k], std::vector<int>(all[k].begin() + 30, all[k].end())) << "in another micro-batch";
    EXPECT_EQ(more[k], all[k]) << "whatever the number of passes";
  }
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(draw_prefixes(many, 3, options, 13, 0), all);
  EXPECT_NE(draw_prefixes(many, 3, other, 12, 0), all);
}

// --- The schedule --------------------------------------------------------------------------------------------------

std::vector<double> shares(const PassSchedule& schedule, int64_t step, int64_t steps) {
  std::vector<double> out;
  for (int k = 1; k <= schedule.most_passes(); ++k) out.push_back(schedule.share(k, step, steps));
  return out;
}

TEST(PassSchedule, KnowsTheMostPassesOfTheStepsSoFar) {
  PassSchedule schedule("0:100,0.3:20/80,0.5:20/70/10,0.8:100");
  for (auto [step, most] : {std::pair{0, 1}, {30, 1}, {31, 2}, {50, 2}, {51, 3}, {100, 3}})
    EXPECT_EQ(schedule.most_passes(step, 100), most) << step;
  EXPECT_EQ(schedule.most_passes(), 3);
}

TEST(PassSchedule, ReadsEveryForm) {
  EXPECT_EQ(shares(PassSchedule("1"), 0, 10), std::vector<double>{1});
  EXPECT_EQ(shares(PassSchedule("3"), 9, 10), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(PassSchedule("16").most_passes(), 16);
  PassSchedule paper("paper"), two("two-pass"), own("0:100,0.3:20/70/10");
  EXPECT_EQ(shares(paper, 49, 100), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(shares(paper, 50, 100), (std::vector<double>{0.5, 0.44, 0.06}));
  EXPECT_EQ(shares(two, 49, 100), (std::vector<double>{1, 0}));
  EXPECT_EQ(shares(two, 99, 100), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(shares(own, 299, 1000), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(shares(own, 300, 1000), (std::vector<double>{0.2, 0.7, 0.1}));
  EXPECT_EQ(own.text(), "0:100,0.3:20/70/10");
  EXPECT_EQ(paper.text(), "paper");
  EXPECT_EQ(PassSchedule("0:0/0/100/0").most_passes(), 3);
  EXPECT_EQ(PassSchedule("0:33.4/33.3/33.3").most_passes(), 3);
  EXPECT_EQ(paper.share(0, 0, 10), 0);
  EXPECT_EQ(paper.share(4, 9, 10), 0);
}

TEST(PassSchedule, NamesWhatIsWrongInOneLine) {
  struct {
    const char *text, *why;
  } bad[] = {
      {"", "empty"},
      {"0", "the number of passes goes from 1 to 16"},
      {"17", "the number of passes goes from 1 to 16"},
      {"123456789123456789123", "the number of passes goes from 1 to 16"},
      {"three", "a number from 0 to 100 is missing"},
      {"-1", "a number from 0 to 100 is missing"},
      {"Paper", "a number from 0 to 100 is missing"},
      {"0:", "a number from 0 to 100 is missing"},
      {"0:50/", "a number from 0 to 100 is missing"},
      {"0:100,", "a number from 0 to 100 is missing"},
      {"0:-5/105", "a number from 0 to 100 is missing"},
      {"0:nan", "a number from 0 to 100 is missing"},
      {"0:1e9", "a number from 0 to 100 is missing"},
      {"0.5:100", "fractions start at 0 and increase to at most 1"},
      {"0:100,0:100", "fractions start at 0 and increase to at most 1"},
      {"0:100,0.5:100,0.4:100", "fractions start at 0 and increase to at most 1"},
      {"0:100,1.5:100", "fractions start at 0 and increase to at most 1"},
      {"0 100", "a fraction is followed by a colon"},
      {"0.5", "fractions start at 0 and increase to at most 1"},
      {"0:100,0.5", "a fraction is followed by a colon"},
      {"0:50", "the percentages of a stage must add up to 100"},
      {"0:0x64", "the percentages of a stage must add up to 100"},
      {"0:50/60", "the percentages of a stage must add up to 100"},
      {"0:100;0.5:100", "stages are separated by commas"},
      {"0:100 ", "stages are separated by commas"},
      {"0:100/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0", "at most 16 passes"},
  };
  for (auto [text, why] : bad) {
    std::string message = message_of([text = text] { PassSchedule schedule(text); });
    EXPECT_EQ(message.rfind("--passes " + std::string(text) + ": " + why + "; give ", 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(PassSchedule, DrawsByItsShares) {
  PassSchedule paper("paper");
  constexpr int64_t kSteps = 40000;
  std::vector<int> early(4), late(4);
  for (int64_t step = 0; step < kSteps; ++step) ++(step < kSteps / 2 ? early : late).at(paper.draw(3, step, kSteps));
  EXPECT_EQ(early[1], kSteps / 2);
  EXPECT_NEAR(late[1], 10000, 300);
  EXPECT_NEAR(late[2], 8800, 300);
  EXPECT_NEAR(late[3], 1200, 150);
  EXPECT_NEAR(double(early[1] + late[1]) / kSteps, 0.75, 0.01);  // 75 / 22 / 3 over the run
  EXPECT_NEAR(double(late[2]) / kSteps, 0.22, 0.01);
  EXPECT_NEAR(double(late[3]) / kSteps, 0.03, 0.005);
}

TEST(PassSchedule, DrawsOnlyWhatHasAShare) {
  PassSchedule gaps("0:0/33.3333/0/66.6667"), fixed("5");
  for (int64_t step = 0; step < 2000; ++step) {
    int k = gaps.draw(1, step, 2000);
    ASSERT_TRUE(k == 2 || k == 4) << k;
    ASSERT_EQ(fixed.draw(1, step, 2000), 5);
  }
}

TEST(PassSchedule, DrawDependsOnSeedAndStepAlone) {
  PassSchedule schedule("0:50/50"), again("0:50/50/0");
  auto draws = [](const PassSchedule& schedule, uint64_t seed) {
    std::vector<int> all;
    for (int64_t step = 0; step < 200; ++step) all.push_back(schedule.draw(seed, step, 200));
    return all;
  };
  EXPECT_EQ(draws(schedule, 1), draws(again, 1));
  EXPECT_NE(draws(schedule, 1), draws(schedule, 2));
}

TEST(PassNames, AreThoseOfTheFlags) {
  EXPECT_STREQ(name_of(GradientMode::through), "through");
  EXPECT_STREQ(name_of(GradientMode::detach), "detach");
  EXPECT_STREQ(name_of(GradientMode::last), "last");
  EXPECT_STREQ(name_of(PrefixMixin::uniform), "uniform");
  EXPECT_STREQ(name_of(PrefixMixin::half), "half");
  EXPECT_STREQ(name_of(PrefixMixin::off), "off");
}

}  // namespace
