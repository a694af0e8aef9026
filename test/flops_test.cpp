// The counted operations are those of the kernels that are called: a table adds up every product and every pair of a
// query and a key that it is given.
#include "flops.h"

#include "engine.h"

namespace {

double operations;  // that the counting table was asked for

void count_pairs(const Segment* segments, int count, int heads, int head_dim, int window, int products) {
  for (int s = 0; s < count; ++s)
    for (int t = segments[s].position; t < segments[s].position + segments[s].rows; ++t)
      for (int j = 0; j <= t; ++j)
        if (window == 0 || j > t - window) operations += 2.0 * products * heads * head_dim;
}

void count_product(int rows, int in, int out) { operations += 2.0 * rows * in * out; }

const Kernels& counting_table() {
  static Kernels table = cpu_kernels();
  table.matmul_forward = [](act* y, const act* x, const act* w, int rows, int in, int out) {
    count_product(rows, in, out);
    cpu_kernels().matmul_forward(y, x, w, rows, in, out);
  };
  table.matmul_backward_input = [](act* dx, const act* dy, const act* w, int rows, int in, int out, bool accumulate) {
    count_product(rows, in, out);
    cpu_kernels().matmul_backward_input(dx, dy, w, rows, in, out, accumulate);
  };
  table.matmul_backward_weight = [](float* dw, const act* dy, const act* x, int rows, int in, int out) {
    count_product(rows, in, out);
    cpu_kernels().matmul_backward_weight(dw, dy, x, rows, in, out);
  };
  table.attention_forward = [](act* y, float* row_max, float* row_scale, const act* q, const act* k, const act* v,
                               const Segment* segments, int count, int heads, int kv_heads, int head_dim, int window) {
    count_pairs(segments, count, heads, head_dim, window, 2);
    cpu_kernels().attention_forward(y, row_max, row_scale, q, k, v, segments, count, heads, kv_heads, head_dim, window);
  };
  table.attention_backward = [](act* dq, act* dk, act* dv, const act* dy, const act* y, const act* q, const act* k,
                                const act* v, const float* row_max, const float* row_scale, const Segment* segments,
                                int count, int heads, int kv_heads, int head_dim, int window) {
    count_pairs(segments, count, heads, head_dim, window, 5);
    cpu_kernels().attention_backward(dq, dk, dv, dy, y, q, k, v, row_max, row_scale, segments, count, heads, kv_heads,
                                     head_dim, window);
  };
  return table;
}

// Every way to plan three passes at most over a few documents, with some, no and all targets masked.
template <class F>
void for_each_plan(const ModelConfig& config, F f) {
  for (int mask : {0, 2, 1}) {
    Batch batch = random_batch({5, 1, 8, 2}, config.vocab, 3, mask);
    for (int passes = 1; passes <= (config.fusion == Fusion::none ? 1 : 3); ++passes)
      for (GradientMode gradient : {GradientMode::through, GradientMode::detach, GradientMode::last})
        for (float lambda : {0.0f, 0.7f})
          for (bool reuse : {true, false})
            for (int form = 0; form < 3; ++form) {
              auto prefix = random_prefixes(batch, passes, unsigned(7 + form));
              if (form == 1) prefix = fully_fused(batch, passes);
              if (form == 2) prefix = std::vector<std::vector<int>>(passes - 1, {5, 1, 8, 2});
              PassOptions options = {.lambda = lambda, .gradient = gradient, .reuse_prefix = reuse};
              SCOPED_TRACE(testing::Message() << name_of(gradient) << ", lambda " << lambda << ", reuse " << reuse
                                              << ", " << passes << " passes, prefix " << form << ", mask " << mask);
              f(batch, passes, plan_passes(batch, passes, prefix, options, 1, 0, std::max(1, batch.target_count())));
            }
  }
}

double operations_run(Model& model, const Batch& batch, int passes, const PassPlan& plan,
                      Recompute recompute = Recompute::none) {
  EngineRun run(counting_table(), model, batch, passes, recompute);
  operations = 0;
  run.forward(plan);
  run.backward(0.01f);
  return operations;
}

ModelConfig plain_config() {
  ModelConfig config = tiny_config();
  config.fusion = Fusion::none;
  return config;
}

}  // namespace

TEST(StepFlops, AreThoseOfTheProductsThatAreRun) {
  auto configs = tiny_configs();
  configs["none"] = plain_config();
  configs["windowed head gate"] = configs["head gate"], configs["windowed head gate"].window = 4;
  for (auto& [name, config] : configs) {
    SCOPED_TRACE(name);
    Model model(config);
    fill_with_noise(model);
    for_each_plan(config, [&, &config = config](const Batch& batch, int passes, const PassPlan& plan) {
      EXPECT_EQ(step_flops(config, batch, plan), operations_run(model, batch, passes, plan));
    });
  }
}

TEST(StepFlops, LeaveOutWhatIsRunASecondTime) {
  Model model(tiny_config());
  fill_with_noise(model);
  Batch batch = random_batch({5, 8}, model.config.vocab, 3);
  PassPlan plan = plan_passes(batch, 2, fully_fused(batch, 2), {}, 1, 0, batch.target_count());
  double counted = step_flops(model.config, batch, plan);
  EXPECT_EQ(operations_run(model, batch, 2, plan, Recompute::norms), counted);
  EXPECT_GT(operations_run(model, batch, 2, plan, Recompute::block), counted);
}

TEST(StepFlops, WithTheLastPassAloneTrainedAreTheDocumentedShare) {
  ModelConfig config = plain_config(), with_feedback = tiny_config();
  for (ModelConfig* c : {&config, &with_feedback}) c->layers = 12, c->ffn = 512, c->context = 64;
  Batch batch = random_batch({64}, config.vocab, 3);
  double plain = step_flops(config, batch, plan_passes(batch, 1, {}, {}, 1, 0, 1));
  for (int K : {2, 3}) {
    PassOptions last = {.gradient = GradientMode::last};
    PassPlan plan = plan_passes(batch, K, fully_fused(batch, K), last, 1, 0, 1);
    EXPECT_NEAR(step_flops(with_feedback, batch, plan) / plain, (K + 2) / 3.0, 0.02) << K;
  }
}

TEST(StepFlops, FallWithTheWindow) {
  ModelConfig config = tiny_config();
  Batch batch = random_batch({8, 8}, config.vocab, 3);
  PassPlan plan = plan_passes(batch, 2, fully_fused(batch, 2), {}, 1, 0, 1);
  double before = 0;
  for (int window : {1, 2, 4, 8}) {
    config.window = window;
    double now = step_flops(config, batch, plan);
    EXPECT_GT(now, before) << window;
    before = now;
  }
  config.window = 0;
  EXPECT_EQ(step_flops(config, batch, plan), before) << "the window holds the whole document";
}

TEST(StackFlops, AreThoseOfAPrefillWhateverItsChunks) {
  for (auto& [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    Model model(config);
    fill_with_noise(model);
    std::vector<int> prompt = {1, 2, 3, 4, 5, 6, 7};
    Segment whole{0, 7, 0, 0, 0};
    for (int rows : {7, 3, 1}) {
      Decoder decoder(counting_table(), model.config, model.params, {1, rows, config.context});
      operations = 0;
      decoder.prefill({prompt}, DecodeMode::standard);
      EXPECT_EQ(stack_flops(config, {whole}, Work::forward), operations) << rows;
    }
  }
}
