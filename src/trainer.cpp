// A training run from its flags to its table.
#include "trainer.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint.h"
#include "error.h"
#include "generate.h"
#include "random.h"
#include "signals.h"
#include "tokenizer.h"

// --- What a run starts from
// ----------------------------------------------------------------------------------------------

namespace {

// Flags that a resumed run may not change: the model, and the order of the data.
constexpr const char* kFixed[] = {
    "data",       "pack",           "seq",      "batch",       "batch-tokens", "model",       "layers",
    "width",      "heads",          "kv-heads", "head-dim",    "ffn",          "window",      "full-attention-every",
    "rope-theta", "residual-scale", "fusion",   "plain-input", "head-gate",    "branch-norm", "optimizer",
    "seed"};
// Flags that belong to one start of the program, not to the run.
constexpr const char* kOfOneStart[] = {"resume", "init-from", "dump", "out", "threads", "device"};

template <size_t n>
bool is_one_of(const std::string& name, const char* const (&names)[n]) {
  return std::any_of(names, names + n, [&](const char* other) { return name == other; });
}

std::string conf_path(const std::string& out) { return out + "/run.conf"; }

// The flags as a file for --config.
std::string conf_text(const Flags& flags) {
  std::string lines = "# The flags of this run; ./train --config takes this file.\n";
  for (const auto& [name, value] : flags.values()) {
    if (is_one_of(name, kOfOneStart)) continue;
    std::string quoted;
    for (char c : value)
      quoted += c == '"' || c == '\\' ? std::string("\\") + c : c == '\n' ? "\\n" : std::string(1, c);
    lines += name + " = \"" + quoted + "\"\n";
  }
  return lines;
}

Json flags_record(const Flags& flags) {
  Json record = Json::object();
  for (const auto& [name, value] : flags.values())
    if (!is_one_of(name, kOfOneStart)) record.set(name, value);
  return record;
}

std::string parent_of(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  size_t slash = trimmed.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : trimmed.substr(0, slash);
}

}  // namespace

// Takes the recorded flags where none were given; refuses given ones that would make it another run.
void Trainer::take_record(Flags& flags, const Json& recorded, const std::string& path) {
  for (const auto& [name, value] : recorded.members) {
    if (value.kind != Json::Kind::string)
      fail("%s: flag `%s` should be recorded as a string", path.c_str(), name.c_str());
    std::string given;
    for (const auto& [flag, now] : flags.values())
      if (flag == name) given = now;
    if (!flags.given(name)) {
      flags.set(name, value.string, path);
      continue;
    }
    if (given == value.string) continue;
    bool is_fixed = is_one_of(name, kFixed) && (o_.dump.empty() || name != "batch");
    if (is_fixed)
      fail(
          "--%s %s: the run in %s has %s; leave the flag out to continue it, or start another run (--init-from takes "
          "its weights)",
          name.c_str(), given.c_str(), parent_of(path).c_str(), value.string.c_str());
    notes_ += text("--%s is now %s, was %s\n", name.c_str(), given.c_str(), value.string.c_str());
  }
}

// Finds what --resume means and takes over that run's flags.
void Trainer::find_resumed(Flags& flags) {
  if (!o_.resume.empty() && !o_.init_from.empty()) fail("--resume and --init-from exclude each other");
  if (o_.resume.empty()) return;
  if (o_.resume != "latest") {
    resumed_from_ = find_checkpoint(o_.resume);
    if (!flags.given("out")) o_.out = parent_of(resumed_from_);
  } else if (!list_checkpoints(o_.out).empty()) {
    resumed_from_ = latest_sound_checkpoint(o_.out);
  } else if (file_exists(conf_path(o_.out))) {
    notes_ += text("%s has no checkpoint yet: starting its run again from the first step\n", o_.out.c_str());
    Flags recorded("", "");
    TrainOptions other;
    add_train_flags(recorded, other);
    std::string argument = "--config=" + conf_path(o_.out);
    char* words[] = {nullptr, argument.data()};
    recorded.parse(2, words);
    take_record(flags, flags_record(recorded), conf_path(o_.out));
    restarted_ = true;
    return;
  } else {
    if (!o_.dump.empty()) fail("--resume: %s holds no run", o_.out.c_str());
    notes_ += text("%s holds no run to resume: starting a new one\n", o_.out.c_str());
    return;
  }
  std::string path = resumed_from_ + "/state.json";
  verify_checkpoint(resumed_from_);
  record_ = parse_json(read_file(path), path);
  take_record(flags, record_.get("flags", path), path);
}

// From words to values, and from a preset to sizes.
void Trainer::resolve(Flags& flags) {
  bool recorded = !resumed_from_.empty() || restarted_;
  if (!recorded) {
    ModelConfig p = preset(o_.preset);
    auto take = [&](const char* name, int& value, int from_preset) {
      if (!flags.given(name)) value = from_preset;
    };
    ModelConfig& m = o_.model;
    take("layers", m.layers, p.layers), take("width", m.width, p.width), take("heads", m.heads, p.heads);
    take("kv-heads", m.kv_heads, flags.given("heads") ? m.heads : p.kv_heads);
    take("head-dim", m.head_dim,
         std::max(2, flags.given("width") || flags.given("heads") ? m.width / m.heads : p.head_dim));
    take("ffn", m.ffn, flags.given("width") ? (m.width * 8 / 3 + 63) / 64 * 64 : p.ffn);
    take("seq", m.context, p.context), take("window", m.window, p.window);
    take("full-attention-every", m.full_attention_every, p.full_attention_every);
    bool divides = m.width % m.heads == 0;
    if (!flags.given("head-dim") && !divides)
      fail("--width %d is not a multiple of --heads %d; choose others, or give --head-dim", m.width, m.heads);
  }
  schedule_ = std::make_unique<PassSchedule>(o_.passes);
  if (!recorded && schedule_->most_passes() == 1 && !flags.given("fusion")) o_.fusion = "none";
  o_.model.fusion = fusion_named(o_.fusion);
  o_.model.plain_input = plain_input_named(o_.plain_input);
  o_.model.resolve();
  if (schedule_->most_passes() > 1 && !has_feedback())
    fail("--passes %s needs a model with feedback; --fusion none has none", o_.passes.c_str());
  o_.pass.mixin = o_.mixin == "half"      ? PrefixMixin::half
                  : o_.mixin == "uniform" ? PrefixMixin::uniform
                                          : PrefixMixin::off;
  o_.pass.gradient = o_.gradient == "through"  ? GradientMode::through
                     : o_.gradient == "detach" ? GradientMode::detach
                                               : GradientMode::last;
  o_.pass.seed = uint64_t(o_.seed);
  o_.optim.kind = o_.optimizer == "adamw" ? OptimizerKind::adamw : OptimizerKind::normuon;
  o_.optim.resolve();
  int64_t micro = int64_t(o_.batch) * o_.model.context, wanted = o_.batch_tokens > 0 ? o_.batch_tokens : micro;
  if (wanted % micro != 0)
    fail("--batch-tokens %lld is not a multiple of --batch × --seq = %lld", (long long)wanted, (long long)micro);
  if (micro > 1 << 26)
    fail("--batch × --seq is %lld rows, more than this engine takes at once; use --batch-tokens to accumulate",
         (long long)micro);
  accumulation_ = wanted / micro;
}

Trainer::Trainer(TrainOptions& options, Flags& flags) : o_(options) {
  find_resumed(flags);
  resolve(flags);
  bool dumping = !o_.dump.empty();
  if (!dumping) {
    make_folder(o_.out);
    lock_ = std::make_unique<FolderLock>(o_.out);
    std::vector<std::string> there = list_checkpoints(o_.out);
    if (resumed_from_.empty() && !there.empty())
      fail("%s holds a run (up to %s): continue it with --resume, or give this one another --out", o_.out.c_str(),
           there.back().c_str());
  }
  o_.threads = set_threads(o_.threads);
  kernels_ = &kernels_for(o_.device);
  data_ = read_training_data(o_.data, o_.model.context, o_.seed);
  loader_ = std::make_unique<Loader>(data_.train, o_.pack == "stream" ? Pack::stream : Pack::documents,
                                     o_.model.context, uint64_t(o_.seed));
  validation_ = validation_batches(data_.validation, o_.pack == "stream" ? Pack::stream : Pack::documents,
                                   o_.model.context, kEvaluationRows);

  ParamLayout layout = param_layout(o_.model);
  PassLimits limits{o_.batch * o_.model.context, schedule_->most_passes()};
  plan_.add("parameters", double(layout.floats) * sizeof(float));
  plan_.add("gradients", double(layout.floats) * sizeof(float));
  Optimizer::plan_memory(plan_, layout, o_.optim);
  PassRunner::plan_memory(plan_, o_.model, limits);
  if (!dumping) plan_evaluation_memory(plan_, o_.model, std::max(kEvaluationRows, o_.model.context));
  require_memory(plan_);

  model_ = std::make_unique<Model>(o_.model);
  grads_ = Block(layout.floats);
  grad_views_ = view_params(o_.model, model_->layout, grads_.data());
  optimizer_ = std::make_unique<Optimizer>(*kernels_, model_->layout, o_.optim);
  runner_ = std::make_unique<PassRunner>(*kernels_, model_->config, limits);
  init_params(model_->layout, model_->block.data(), uint64_t(o_.seed));
  if (!o_.init_from.empty()) init_from(*model_, find_checkpoint(o_.init_from));
  if (!resumed_from_.empty()) load_state();
  if (dumping) return;

  record_flags_ = flags_record(flags);
  write_file(conf_path(o_.out), conf_text(flags));
  if (resumed_from_.empty())
    cut_log(o_.out + "/log.jsonl", -1);
  else
    cut_log(o_.out + "/log.jsonl", step_);
  log_ = std::make_unique<JsonLog>(o_.out + "/log.jsonl");
}

Trainer::~Trainer() = default;

void Trainer::load_state() {
  std::string path = resumed_from_ + "/state.json";
  read_params(*model_, resumed_from_);
  std::vector<int64_t> counts;
  for (const Json& n : record_.get("update_counts", path).items) {
    if (n.kind != Json::Kind::number || n.number < 0)
      fail("%s: `update_counts` should hold whole numbers", path.c_str());
    counts.push_back(int64_t(n.number));
  }
  SafetensorsFile moments(resumed_from_ + "/optimizer.safetensors");
  optimizer_->load(moments, counts);
  step_ = last_saved_ = record_.get_int("step", path);
  if (uint32_t(record_.get_int("data_checksum", path)) != data_.checksum)
    fail("--data %s is not what the run in %s was trained on: the file has changed", o_.data.c_str(),
         resumed_from_.c_str());
  loader_->seek({record_.get_int("epoch", path), record_.get_int("epoch_row", path)});
  costs_.tokens = record_.get_int("tokens", path);
  costs_.token_passes = record_.get_number("token_passes", path);
  costs_.rows = record_.get_number("rows", path);
  costs_.flops = record_.get_number("flops", path);
  costs_.seconds = record_.get_number("seconds", path);
}

void Trainer::save() {
  if (step_ == last_saved_) return;
  Json state = Json::object({{"step", step_},
                             {"epoch", loader_->position().epoch},
                             {"epoch_row", loader_->position().row},
                             {"data_checksum", int64_t(data_.checksum)},
                             {"tokens", costs_.tokens},
                             {"token_passes", costs_.token_passes},
                             {"rows", costs_.rows},
                             {"flops", costs_.flops},
                             {"seconds", costs_.seconds},
                             {"flags", record_flags_}});
  Json counts = Json::array();
  for (int64_t n : optimizer_->step_counts()) counts.items.push_back(n);
  state.set("update_counts", counts);
  CheckpointContents contents{tensor_views(model_->layout, model_->block.data()), optimizer_->state(),
                              to_json(model_->config), state};
  std::string path = save_checkpoint(o_.out, step_, contents, o_.keep);
  last_saved_ = step_;
  progress_->print(text("saved %s\n", path.c_str()));
}

// --- The plan
// ------------------------------------------------------------------------------------------------------------

namespace {

// Rows that a step of K passes is expected to run, in units of its tokens, for segments of about `length` rows.
double expected_rows(const TrainOptions& o, int passes, double length) {
  double uniform = (length - 1) / (2 * length), off = (length - 1) / length;
  double suffix = o.pass.mixin == PrefixMixin::uniform ? uniform
                  : o.pass.mixin == PrefixMixin::off   ? off
                                                       : (uniform + off) / 2;
  double rows = 1 + (passes - 1) * suffix;
  return o.pass.gradient == GradientMode::last && passes > 1 ? rows - suffix + 1 : rows;
}

}  // namespace

std::string Trainer::plan_text() const {
  const ModelConfig& c = model_->config;
  double passes = 0, rows = 0, pieces = double(loader_->rows_per_epoch());
  double length = std::min<double>(c.context, double(data_.train.tokens.size()) / std::max(1, data_.train.count()));
  for (int64_t i = 0; i < 1000; ++i)
    for (int k = 1; k <= schedule_->most_passes(); ++k) {
      double p = schedule_->share(k, i, 1000) / 1000;
      passes += p * k, rows += p * expected_rows(o_, k, length);
    }
  double tokens = double(o_.steps) * double(accumulation_) * o_.batch * c.context;
  std::string window = c.window > 0 ? text(", window %d", c.window) : "";
  if (c.window > 0 && c.full_attention_every > 0) window += text(" (full every %d)", c.full_attention_every);
  std::string out;
  out += text(
      "model    %s parameters: %d layers, width %d, %d heads of %d (%d key/value), ffn %d, vocabulary %d%s, fusion "
      "%s\n",
      show_count(double(model_->layout.count())).c_str(), c.layers, c.width, c.heads, c.head_dim, c.kv_heads, c.ffn,
      c.vocab, window.c_str(), name_of(c.fusion));
  out += text("data     %s\n", data_.description.c_str());
  out += text("run      %lld steps of %lld tokens (%d × %d%s), %s tokens, %.2g epochs\n", (long long)o_.steps,
              (long long)(accumulation_ * o_.batch * c.context), o_.batch, c.context,
              accumulation_ > 1 ? text(" × %lld micro-batches", (long long)accumulation_).c_str() : "",
              show_count(tokens).c_str(), double(o_.steps) * double(accumulation_) * o_.batch / std::max(1.0, pieces));
  out += text("passes   %s, mix-in %s: %.2f passes a token, about %.2f rows a token, %s rows in all\n",
              o_.passes.c_str(), o_.mixin.c_str(), passes, rows, show_count(rows * tokens).c_str());
  out += text("optimize %s, lr %g, warm-up %d steps, cooldown %g, weight decay %g, clip %g\n", o_.optimizer.c_str(),
              double(o_.optim.lr), o_.optim.warmup, double(o_.optim.cooldown), double(o_.optim.weight_decay),
              double(o_.optim.clip));
  out += text("memory   %s:", show_bytes(plan_.total()).c_str());
  for (const auto& [kind, bytes] : plan_.bytes)
    out += text(" %s %s%s", kind.c_str(), show_bytes(bytes).c_str(), &kind == &plan_.bytes.back().first ? "\n" : ",");
  out += text("device   %s, %d thread%s\n", kernels_->name, o_.threads, o_.threads == 1 ? "" : "s");
  return out;
}

// --- Steps
// ---------------------------------------------------------------------------------------------------------------

namespace {

// Multiplications and additions of a step's products and attention, forward and backward.
double step_flops(const ModelConfig& c, const Batch& batch, const PassPlan& plan) {
  double D = c.width, Hd = c.heads_width(), pairs = 0, targets = 0, fused = 0;
  double layer = D * c.qkv_width() + Hd * D + 3.0 * D * c.ffn;
  for (const Pass& pass : plan.passes) {
    fused += double(pass.fused.size());
    for (const Segment& s : pass.segments) pairs += double(s.rows) * (s.position + (s.rows + 1) / 2.0);
    for (float w : pass.weight) targets += w > 0;
  }
  double fusion = c.fusion == Fusion::concat ? 4 * D * D : D * D;
  double gates = c.fusion == Fusion::gate && plan.passes.size() > 1 ? double(batch.rows()) * D * D : 0;
  return 6 * (plan.rows() * layer * c.layers + fused * fusion + gates + targets * D * c.vocab) +
         14 * pairs * Hd * c.layers;
}

}  // namespace

Trainer::StepBatch Trainer::next_step() {
  StepBatch step;
  for (int64_t i = 0; i < accumulation_; ++i) {
    step.micro.push_back(loader_->next(o_.batch));
    step.targets += step.micro.back().target_count();
    step.tokens += step.micro.back().rows();
  }
  step.passes = schedule_->draw(uint64_t(o_.seed), step_, o_.steps);
  int first_segment = 0;
  for (const Batch& batch : step.micro) {
    auto prefix = draw_prefixes(batch, step.passes, o_.pass, step_, first_segment);
    step.plans.push_back(
        plan_passes(batch, step.passes, std::move(prefix), o_.pass, step_, first_segment, step.targets));
    first_segment += int(batch.segments.size());
  }
  return step;
}

PassLosses Trainer::gradients(const StepBatch& step, float z_loss) {
  PassLosses losses;
  kernels_->zero(grads_.data(), int64_t(grads_.size()));
  for (size_t i = 0; i < step.micro.size(); ++i) {
    runner_->forward(model_->params, step.micro[i], step.plans[i]);
    runner_->backward(model_->params, grad_views_, step.micro[i], step.plans[i], z_loss, losses);
  }
  return losses;
}

double Trainer::objective(const PassLosses& losses) const {
  int K = int(losses.loss.size());
  if (o_.pass.gradient == GradientMode::last) return losses.mean(K - 1);
  double later = 0;
  for (int k = 1; k < K; ++k) later += losses.mean(k) / (K - 1);
  return losses.mean(0) + double(o_.pass.lambda) * later;
}

void Trainer::train_step() {
  double start = seconds_now();
  StepBatch step = next_step();
  if (step.targets == 0) {
    log_->write(Json::object({{"step", step_ + 1}, {"skipped", "no row has a target"}}));
    ++step_;
    return;
  }
  PassLosses losses = gradients(step, in_cooldown(o_.optim, step_, o_.steps) ? o_.optim.z_loss : 0);
  bool with_feedback = step.passes > 1;
  double norm = optimizer_->gradient_norm(grads_.data(), with_feedback);
  if (!std::isfinite(objective(losses)) || !std::isfinite(norm)) {
    std::string kept = last_saved_ >= 0
                           ? text("the last good checkpoint is %s", list_checkpoints(o_.out).back().c_str())
                           : "there is no checkpoint yet";
    fail("step %lld: the loss is %g and the gradient norm %g; stopped, %s. A lower --lr or a longer --warmup may help",
         (long long)step_ + 1, objective(losses), norm, kept.c_str());
  }
  optimizer_->step(model_->block.data(), grads_.data(), norm, with_feedback, step_, o_.steps);
  costs_.tokens += step.tokens;
  costs_.token_passes += double(step.tokens) * step.passes;
  for (size_t i = 0; i < step.plans.size(); ++i) {
    costs_.rows += step.plans[i].rows();
    costs_.flops += step_flops(model_->config, step.micro[i], step.plans[i]);
  }
  double seconds = seconds_now() - start;
  costs_.seconds += seconds;
  log_step(step, losses, norm, seconds);
  ++step_;
}

void Trainer::log_step(const StepBatch& step, const PassLosses& losses, double norm, double seconds) {
  Json per_pass = Json::array();
  recent_loss_.resize(std::max(recent_loss_.size(), losses.loss.size()));
  std::string shown;
  for (size_t k = 0; k < losses.loss.size(); ++k) {
    double loss = losses.mean(int(k));
    per_pass.items.push_back(loss);
    recent_loss_[k] = recent_loss_[k] == 0 ? loss : 0.98 * recent_loss_[k] + 0.02 * loss;
  }
  for (double loss : recent_loss_) shown += text(" %.3f", loss);
  float lr = float(double(o_.optim.lr) * schedule(o_.optim, step_, o_.steps));
  log_->write(Json::object({{"step", step_ + 1},
                            {"passes", step.passes},
                            {"loss", objective(losses)},
                            {"loss_per_pass", per_pass},
                            {"grad_norm", norm},
                            {"lr", lr},
                            {"tokens", costs_.tokens},
                            {"tokens_per_s", double(step.tokens) / seconds},
                            {"ms", 1000 * seconds}}));
  pace_ = pace_ == 0 ? seconds : 0.99 * pace_ + 0.01 * seconds;
  double left = pace_ * double(o_.steps - step_ - 1);
  progress_->update(
      double(step_ + 1) / double(o_.steps),
      text("step %lld/%lld  loss by pass%s  |g| %.2f  %s tokens/s  %s left", (long long)step_ + 1, (long long)o_.steps,
           shown.c_str(), norm, show_count(double(step.tokens) / pace_).c_str(), show_duration(left).c_str()));
}

// Losses on a part of the held-out text, without the long iterations of the final table.
void Trainer::evaluate_held_out() {
  constexpr size_t kBatches = 8;
  std::vector<Batch> part(validation_.begin(), validation_.begin() + std::min(kBatches, validation_.size()));
  std::vector<PassResult> results = evaluate_passes(*kernels_, model_->config, model_->params, part, {0, 1, 2, 3});
  Json losses = Json::array();
  std::string shown;
  for (const PassResult& r : results) losses.items.push_back(r.loss), shown += text(" %.4f", r.loss);
  log_->write(Json::object({{"step", step_}, {"val_loss", losses}}));
  progress_->print(text("step %lld: held-out loss after 0, 1, … fused passes:%s\n", (long long)step_, shown.c_str()));
}

void Trainer::show_sample() {
  DecodeMode mode = has_feedback() && schedule_->most_passes() > 1 ? DecodeMode::soft : DecodeMode::standard;
  size_t number = size_t(step_) / std::max(1, o_.sample_every);
  if (!data_.puzzles.empty() && !data_.puzzles[number % data_.puzzles.size()].answers.empty()) {
    std::vector<std::string> said;
    const Puzzle& puzzle = data_.puzzles[number % data_.puzzles.size()];
    answer_puzzles(*kernels_, model_->config, model_->params, {puzzle}, mode, 1, &said);
    progress_->print(text("step %lld: %s answers %s\n", (long long)step_, name_of(mode), said[0].c_str()));
    return;
  }
  const Documents& held_out = data_.validation;
  int64_t start = held_out.starts[number % held_out.count()], length = held_out.length(int(number % held_out.count()));
  length = std::clamp<int64_t>(length / 2, 1, std::min(24, o_.model.context / 2));
  std::vector<int> prompt(held_out.tokens.begin() + start, held_out.tokens.begin() + start + length);
  Decoder decoder(*kernels_, model_->config, model_->params, {1, 64, o_.model.context});
  Generation g;
  g.mode = mode, g.tokens = 64, g.sampling.temperature = 0.8f, g.seed = uint64_t(o_.seed);
  std::string said;
  generate(
      decoder, model_->config, {prompt}, step_, g, [&](int, const std::string& piece) { said += piece; },
      [] { return false; });
  std::string shown;
  for (char c : decode(prompt) + "│" + said) shown += c == '\n' ? std::string("⏎") : std::string(1, c);
  progress_->print(text("step %lld: %s says %s\n", (long long)step_, name_of(mode), shown.c_str()));
}

bool Trainer::run() {
  std::printf("%s%s", notes_.c_str(), plan_text().c_str());
  if (step_ > 0) std::printf("resumed  %s, at step %lld\n", resumed_from_.c_str(), (long long)step_);
  std::fflush(stdout);
  progress_ = std::make_unique<Progress>(stdout);
  auto due = [&](int every) { return every > 0 && step_ % every == 0 && step_ < o_.steps; };
  while (step_ < o_.steps) {
    train_step();
    if (due(o_.eval_every)) evaluate_held_out();
    if (due(o_.sample_every)) show_sample();
    bool stop = stop_signal() != 0;
    if (due(o_.save_every) || step_ == o_.steps || stop) save();
    if (stop && step_ < o_.steps) {
      progress_->finish();
      std::printf("stopped at step %lld; continue with: ./train --resume --out %s\n", (long long)step_, o_.out.c_str());
      return false;
    }
  }
  progress_->finish();
  return true;
}

void Trainer::report() {
  double start = seconds_now();
  Evaluation e = evaluate(*kernels_, model_->config, model_->params, validation_, data_.puzzles);
  Json losses = Json::array();
  for (const PassResult& r : e.passes) losses.items.push_back(r.loss);
  Json line = Json::object({{"step", step_}, {"val_loss", losses}, {"final", true}});
  log_->write(line);
  write_file(o_.out + "/evaluation.json", write_json_indented(to_json(e, data_.puzzles)) + "\n");
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("\n%s\n", show_evaluation(e, data_.puzzles).c_str());
  std::printf(
      "trained  %s tokens, %s token-equivalents (tokens × passes), %s row-equivalents (%.2f rows a token), %.2e FLOP\n",
      show_count(double(costs_.tokens)).c_str(), show_count(costs_.token_passes).c_str(),
      show_count(costs_.rows).c_str(), costs_.rows / std::max(1.0, double(costs_.tokens)), costs_.flops);
  std::printf("took     %s of steps (%.1f GFLOP/s), %s of final evaluation; peak memory %s\n",
              show_duration(costs_.seconds).c_str(), costs_.flops / std::max(1e-9, costs_.seconds) / 1e9,
              show_duration(seconds_now() - start).c_str(), show_bytes(double(usage.ru_maxrss) * 1024).c_str());
  std::string prompt =
      data_.puzzles.empty() ? "…" : data_.puzzles[0].text.substr(0, data_.puzzles[0].text.find('?') + 1);
  std::printf("talk     ./sample --model %s%s --prompt \"%s\"\n", o_.out.c_str(), has_feedback() ? " --mode soft" : "",
              prompt.c_str());
}
