#include "passes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

#include "error.h"
#include "exact.h"
#include "random.h"

// --- The plan

std::vector<std::vector<int>> draw_prefixes(const Batch& batch, int passes, const PassOptions& options, int64_t step,
                                            int first_segment) {
  std::vector<std::vector<int>> prefix;
  for (int k = 2; k <= passes; ++k) {
    prefix.emplace_back();
    for (size_t s = 0; s < batch.segments.size(); ++s) {
      Random random(random_key(options.seed, Purpose::prefix, step, k, first_segment + int64_t(s)));
      bool uniform =
          options.mixin == PrefixMixin::uniform || (options.mixin == PrefixMixin::half && random.below(2) == 0);
      prefix.back().push_back(uniform ? 1 + random.below(batch.segments[s].rows) : 1);
    }
  }
  return prefix;
}

PassPlan plan_passes(const Batch& batch, int passes, std::vector<std::vector<int>> prefix, const PassOptions& options,
                     int64_t step, int first_segment, int64_t target_count) {
  PassPlan plan;
  plan.prefix = std::move(prefix);
  plan.carry_gradient = options.gradient == GradientMode::through;
  int N = batch.rows();
  std::vector<int> states(N);
  std::iota(states.begin(), states.end(), 0);
  std::vector<int> times_prefix(N);  // in how many passes k ≥ 2 a row's state is pass 1's

  Pass one;
  one.rows = N, one.segments = batch.segments, one.token_row = one.state_row = states;
  one.input.plain = one.input.plain_token = states;
  plan.passes.push_back(one);
  for (int k = 2; k <= passes; ++k) {
    Pass pass;
    pass.first = plan.rows();
    pass.input.jitter = options.jitter;
    pass.first_fused = k == 2 ? 0 : plan.passes.back().first_fused + int(plan.passes.back().input.fused.size());
    bool reuse = options.reuse_prefix && !(options.gradient == GradientMode::last && k == passes);
    std::vector<int> next = states;
    for (size_t s = 0; s < batch.segments.size(); ++s) {
      const Segment& segment = batch.segments[s];
      int p = plan.prefix[k - 2][s], begin = reuse ? p : 0;
      check(p >= 1 && p <= segment.rows, "prefix of %d rows in a segment of %d", p, segment.rows);
      if (begin < segment.rows) {
        int kv = pass.first + pass.rows;
        pass.segments.push_back({pass.rows, segment.rows - begin, begin, segment.row, kv});
      }
      for (int t = 0; t < segment.rows; ++t) {
        int token_row = segment.row + t;
        if (t < begin) {
          ++times_prefix[token_row];
          next[token_row] = token_row;
          continue;
        }
        int row = pass.rows++;
        next[token_row] = pass.first + row;
        pass.token_row.push_back(token_row);
        if (t < p) {
          pass.input.add_plain(row, token_row);
          continue;
        }
        pass.input.add_fused(row, token_row, states[token_row - 1]);
        pass.input.noise_key.push_back(
            random_key(options.seed, Purpose::jitter, step, k, first_segment + int64_t(s), t));
      }
    }
    states = pass.state_row = std::move(next);
    plan.passes.push_back(std::move(pass));
  }

  double base = target_count > 0 ? 1.0 / double(target_count) : 0,
         share = passes > 1 ? double(options.lambda) / (passes - 1) : 0;
  for (int k = 1; k <= passes; ++k) {
    Pass& pass = plan.passes[k - 1];
    bool last_only = options.gradient == GradientMode::last;
    pass.trained = last_only ? k == passes : k == 1 || share > 0;
    for (int row = 0; row < pass.rows; ++row) {
      double weight = k > 1 ? base * share : base * (1 + share * times_prefix[row]);
      if (last_only) weight = k == passes ? base : 0;
      pass.weight.push_back(batch.targets[pass.token_row[row]] >= 0 ? float(weight) : 0.0f);
    }
  }
  return plan;
}

static bool any_fused(const PassPlan& plan, bool among_trained) {
  return std::any_of(plan.passes.begin(), plan.passes.end(),
                     [&](const Pass& p) { return !p.input.fused.empty() && (p.trained || !among_trained); });
}

bool PassPlan::fuses() const { return any_fused(*this, false); }
bool PassPlan::trains_feedback() const { return any_fused(*this, true); }

// --- Memory

namespace {

constexpr size_t kLogitRows = 256;  // rows of logits held at a time
static_assert(kLogitRows % kSummedRows == 0, "the embedding's gradient is summed by blocks of rows");

// Later passes run at most all rows of pass 1 again.
size_t tape_rows(PassLimits limits) { return size_t(limits.rows) * limits.passes; }
size_t fused_rows(PassLimits limits) { return size_t(limits.rows) * (limits.passes - 1); }

void cut_activations(Cutter& cutter, PassBuffers& b, const ModelConfig& c, PassLimits limits) {
  bool feedback = limits.passes > 1;
  b.tape = cut_tape(cutter, c, TapeKind::training, tape_rows(limits), tape_rows(limits), limits.recompute);
  b.tokens = cut_embedded_tokens(cutter, c, limits.rows, feedback);
  b.feedback = feedback ? cut_feedback_tape(cutter, c, fused_rows(limits)) : FeedbackTape{};
}

void cut_gradients(Cutter& cutter, PassBuffers& b, const ModelConfig& c, PassLimits limits) {
  size_t n = size_t(limits.rows) * c.width;
  bool feedback = limits.passes > 1;
  b.gradient = cut_gradient_tape(cutter, c, limits.rows, tape_rows(limits), feedback);
  b.dh = cutter.acts(tape_rows(limits) * c.width), b.de = cutter.acts(n), b.dembedded = cutter.acts(n);
  b.dgates_in = feedback && c.fusion == Fusion::gate ? cutter.acts(n) : nullptr;
  b.feedback_gradient = feedback ? cut_feedback_gradient(cutter, c, limits.rows) : FeedbackGradient{};
  b.dmixed = feedback ? cutter.acts(n) : nullptr;
}

void cut_classifier(Cutter& cutter, PassBuffers& b, const ModelConfig& c, PassLimits limits) {
  b.loss = reinterpret_cast<double*>(cutter.floats(2 * tape_rows(limits)));
  b.z_squared = reinterpret_cast<double*>(cutter.floats(2 * tape_rows(limits)));
  b.logits = cutter.acts(kLogitRows * c.vocab);
  b.h_chunk = cutter.acts(kLogitRows * c.width), b.dh_chunk = cutter.acts(kLogitRows * c.width);
}

using Cut = void (*)(Cutter&, PassBuffers&, const ModelConfig&, PassLimits);
constexpr Cut kCuts[] = {cut_activations, cut_gradients, cut_classifier};
constexpr const char* kCutNames[] = {"activations", "activation gradients", "logits"};

}  // namespace

void PassRunner::plan_memory(Plan& plan, const Kernels& run, const ModelConfig& config, PassLimits limits) {
  PassBuffers unused;
  for (int i = 0; i < 3; ++i) {
    Cutter count(run);
    kCuts[i](count, unused, config, limits);
    plan.add(kCutNames[i], double(count.used()) * sizeof(float));
  }
}

PassRunner::PassRunner(const Kernels& kernels, const ModelConfig& config, PassLimits limits)
    : run_(kernels),
      config_(config),
      rope_(rope_block(kernels, config, config.context)),
      stack_{kernels, config, rope_.data()},
      feedback_{kernels, config},
      row_loss_(tape_rows(limits)),
      row_z_squared_(tape_rows(limits)) {
  Block* blocks[] = {&activations_, &gradients_, &classifier_};
  for (int i = 0; i < 3; ++i) {
    Cutter count(run_);
    kCuts[i](count, buffers_, config, limits);
    *blocks[i] = Block(run_, count.used());
    Cutter cutter(run_, blocks[i]->data());
    kCuts[i](cutter, buffers_, config, limits);
  }
}

// --- Forward

void PassRunner::forward(const ModelParams& params, const Batch& batch, const PassPlan& plan) {
  PassBuffers& b = buffers_;
  feedback_.embed(params, b.tokens, batch.tokens.data(), batch.rows(), plan.fuses());
  for (const Pass& pass : plan.passes) {
    if (pass.rows == 0) continue;
    FeedbackTape tape = plan.passes.size() > 1 ? feedback_.from_row(b.feedback, pass.first_fused) : FeedbackTape{};
    feedback_.forward(params, tape, at_row(b.tape.layers[0].x, pass.first), b.tokens, b.tape.h, pass.input);
    stack_.forward(params, b.tape, pass.first, pass.rows, pass.segments);
  }
}

// --- Backward

// The fused classifier: logits exist for kLogitRows rows at a time, and only for rows that have a target.
void PassRunner::classify(const ModelParams& params, const ModelParams& grads, const Batch& batch, const Pass& pass,
                          float z_loss) {
  PassBuffers& b = buffers_;
  int D = config_.width, V = config_.vocab;
  act *h = at_row(b.tape.h, pass.first), *dh = at_row(b.dh, pass.first);
  run_.zero(dh, int64_t(pass.rows) * D);
  std::vector<int> rows, target;
  std::vector<float> weight;
  for (int row = 0; row < pass.rows; ++row) {
    if (batch.targets[pass.token_row[row]] < 0) continue;
    rows.push_back(row), target.push_back(batch.targets[pass.token_row[row]]), weight.push_back(pass.weight[row]);
  }
  for (size_t i = 0; i < rows.size(); i += kLogitRows) {
    int count = int(std::min(kLogitRows, rows.size() - i));
    run_.gather_rows(b.h_chunk, h, &rows[i], count, D);
    run_.matmul_forward(b.logits, b.h_chunk, params.embedding, count, D, V);
    run_.cross_entropy(b.loss + scored_.size(), b.z_squared + scored_.size(), nullptr, b.logits, &target[i],
                       pass.trained ? &weight[i] : nullptr, z_loss, count, V);
    for (int j = 0; j < count; ++j) scored_.push_back(pass.first + rows[i + j]);
    if (!pass.trained) continue;
    run_.matmul_backward_input(b.dh_chunk, b.logits, params.embedding, count, D, V, false);
    run_.matmul_backward_weight(grads.embedding, b.logits, b.h_chunk, count, D, V);
    run_.scatter_rows(dh, b.dh_chunk, &rows[i], count, D);
  }
}

void PassRunner::read_losses() {
  size_t n = scored_.size();
  std::vector<double> loss(n), z_squared(n);
  run_.download(loss.data(), buffers_.loss, n * sizeof(double));
  run_.download(z_squared.data(), buffers_.z_squared, n * sizeof(double));
  for (size_t i = 0; i < n; ++i) row_loss_[scored_[i]] = loss[i], row_z_squared_[scored_[i]] = z_squared[i];
}

void PassRunner::input_backward(const ModelParams& params, const ModelParams& grads, const PassPlan& plan,
                                const Pass& pass) {
  PassBuffers& b = buffers_;
  const InputRows& input = pass.input;
  int D = config_.width, fused = int(input.fused.size()), plain = int(input.plain.size());
  const act* du = b.gradient.dx;
  if (fused > 0) {
    if (plain > 0) run_.gather_rows(b.dmixed, du, input.fused.data(), fused, D);
    feedback_.backward(params, grads, feedback_.from_row(b.feedback, pass.first_fused), b.feedback_gradient,
                       plan.carry_gradient ? b.dh : nullptr, b.dembedded, b.dgates_in, plain > 0 ? b.dmixed : du,
                       b.tokens.gates, input);
  }
  if (plain == 0) return;
  if (fused > 0) run_.gather_rows(b.dmixed, du, input.plain.data(), plain, D);
  act* to = config_.plain_input == PlainInput::raw ? b.de : b.dembedded;
  run_.scatter_add_rows(to, fused > 0 ? b.dmixed : du, input.plain_token.data(), plain, D);
}

void PassRunner::backward(const ModelParams& params, const ModelParams& grads, const Batch& batch, const PassPlan& plan,
                          float z_loss, PassLosses& losses) {
  PassBuffers& b = buffers_;
  int D = config_.width, N = batch.rows(), K = int(plan.passes.size());
  scored_.clear();
  for (int k = K - 1; k >= 0; --k) classify(params, grads, batch, plan.passes[k], z_loss);
  if (K > 1) {
    int64_t kv = int64_t(plan.rows()) * config_.kv_heads * config_.head_dim;
    for (int l = 0; l < config_.layers; ++l) run_.zero(b.gradient.dk[l], kv), run_.zero(b.gradient.dv[l], kv);
  }
  run_.zero(b.de, int64_t(N) * D);
  run_.zero(b.dembedded, int64_t(N) * D);
  if (b.dgates_in) run_.zero(b.dgates_in, int64_t(N) * D);
  GradientTape gradient = b.gradient;
  gradient.several_passes = K > 1;
  for (int k = K - 1; k >= 0; --k) {
    const Pass& pass = plan.passes[k];
    if (!pass.trained || pass.rows == 0) continue;
    stack_.backward(params, grads, b.tape, gradient, at_row(b.dh, pass.first), pass.first, pass.rows, pass.segments);
    input_backward(params, grads, plan, pass);
  }
  bool feedback = plan.trains_feedback();
  if (feedback && config_.fusion == Fusion::gate)
    feedback_.gates_backward(params, grads, b.dembedded, b.dgates_in, b.tokens.embedded, N);
  if (feedback || config_.plain_input == PlainInput::normed)
    run_.rmsnorm_backward(b.de, grads.input_norm, b.dembedded, b.tokens.e, params.input_norm, b.tokens.rrms, N, D);
  run_.embedding_backward(grads.embedding, b.de, batch.tokens.data(), N, D);

  read_losses();
  losses.loss.resize(K), losses.z_squared.resize(K);
  losses.targets += batch.target_count();
  for (int k = 0; k < K; ++k)
    for (int row = 0; row < N; ++row) {
      if (batch.targets[row] < 0) continue;
      losses.loss[k] += row_loss_[plan.passes[k].state_row[row]];
      losses.z_squared[k] += row_z_squared_[plan.passes[k].state_row[row]];
    }
}

Objective objective_of(const PassLosses& losses, const PassOptions& options, float z_loss) {
  int K = int(losses.loss.size());
  auto weighted = [&](const std::vector<double>& sums) {
    if (options.gradient == GradientMode::last) return losses.mean_of(sums, K - 1);
    double later = 0;
    for (int k = 1; k < K; ++k) later += losses.mean_of(sums, k) / (K - 1);
    return losses.mean_of(sums, 0) + double(options.lambda) * later;
  };
  return {weighted(losses.loss), double(z_loss) * weighted(losses.z_squared)};
}

// --- The schedule

PassSchedule::PassSchedule(const std::string& text) : text_(text) {
  std::string form = text;
  if (text == "paper") form = "0:100/0/0,0.5:50/44/6";
  if (text == "two-pass") form = "0:100/0,0.5:50/50";
  auto wrong = [&](const char* why) {
    fail(
        "--passes %s: %s; give a number of passes, paper, two-pass, or a schedule like 0:100,0.3:20/70/10 (fraction of "
        "the run:"
        "percent of steps with 1/2/3/… passes)",
        text.c_str(), why);
  };
  if (form.empty()) wrong("empty");
  if (form.find_first_not_of("0123456789") == std::string::npos) {
    if (form.size() > 2 || std::stoi(form) < 1 || std::stoi(form) > 16) wrong("the number of passes goes from 1 to 16");
    Stage always{0, std::vector<double>(std::stoi(form))};
    always.share.back() = 1;
    stages_.push_back(always);
    return;
  }
  const char* p = form.c_str();
  auto number = [&] {
    double x = -1;
    auto [end, error] = std::from_chars(p, form.c_str() + form.size(), x);
    if (*p < '0' || *p > '9' || error != std::errc() || !(x >= 0 && x <= 100))
      wrong("a number from 0 to 100 is missing");
    p = end;
    return x;
  };
  for (;;) {
    Stage stage{number(), {}};
    if (stage.from > 1 || (stages_.empty() ? stage.from != 0 : stage.from <= stages_.back().from))
      wrong("fractions start at 0 and increase to at most 1");
    if (*p++ != ':') wrong("a fraction is followed by a colon");
    double total = 0;
    do {
      stage.share.push_back(number() / 100);
      total += stage.share.back();
    } while (*p == '/' && ++p);
    if (std::abs(total - 1) > 1e-6) wrong("the percentages of a stage must add up to 100");
    if (stage.share.size() > 16) wrong("at most 16 passes");
    stages_.push_back(stage);
    if (*p == 0) return;
    if (*p++ != ',') wrong("stages are separated by commas");
  }
}

double PassSchedule::share(int passes, int64_t step, int64_t steps) const {
  const Stage* now = &stages_[0];
  for (const Stage& stage : stages_)
    if (double(step) >= stage.from * double(steps)) now = &stage;
  return passes >= 1 && size_t(passes) <= now->share.size() ? now->share[passes - 1] : 0;
}

int PassSchedule::draw(uint64_t seed, int64_t step, int64_t steps) const {
  double u = random_uniform(random_key(seed, Purpose::passes, step), 0);
  int last = 1;
  for (int k = 1; k <= most_passes(); ++k) {
    double p = share(k, step, steps);
    if (p > 0) last = k;
    if (u < p) return k;
    u -= p;
  }
  return last;  // rounding left a sliver
}

int PassSchedule::most_passes() const { return most_passes(INT64_MAX, 1); }

int PassSchedule::most_passes(int64_t step, int64_t steps) const {
  int most = 1;
  for (const Stage& stage : stages_) {
    if (double(step - 1) < stage.from * double(steps)) continue;
    for (size_t k = 0; k < stage.share.size(); ++k)
      if (stage.share[k] > 0) most = std::max(most, int(k) + 1);
  }
  return most;
}
