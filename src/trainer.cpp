// A training run's steps, to its table. What it starts from is in start.cpp.
#include "trainer.h"

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>

#include "checkpoint.h"
#include "error.h"
#include "flops.h"
#include "generate.h"
#include "program.h"
#include "questions.h"
#include "random.h"
#include "signals.h"

// --- Checkpoints

// Others may have had the machine when it was measured before.
void Trainer::measure_peak() {
  constexpr double kSeconds = 0.03;
  peak_ = std::max(peak_, peak_rate(*kernels_, kSeconds));
}

void Pace::add(double new_tokens, double new_rows, double new_flops, double new_seconds) {
  double keep = std::exp(-new_seconds / memory);
  steps = keep * steps + 1, tokens = keep * tokens + new_tokens, rows = keep * rows + new_rows;
  flops = keep * flops + new_flops, seconds = keep * seconds + new_seconds;
}

bool Trainer::feedback_trained() const {
  if (feedback_started_ || !has_feedback()) return has_feedback();
  return feedback_has_updates(model_->layout, optimizer_->step_counts());
}

// How many passes training has used so far. Where the feedback was trained before this run, how deep is not known.
int Trainer::passes_trained() const {
  if (!feedback_trained()) return 1;
  int passes = schedule_->most_passes(step_, o_.steps);
  return passes > 1 ? passes : INT_MAX;
}

void Trainer::fail_broken(const std::string& what) const {
  std::vector<std::string> kept = list_checkpoints(o_.out);
  const char* clip = o_.optim.clip > 0 ? "a smaller --clip" : "--clip, which is off (--clip 1 bounds the gradient),";
  fail("%s; stopped at step %lld. %s%s. A lower --lr, a longer --warmup or %s may help", what.c_str(),
       (long long)step_ + 1, kept.empty() ? "There is no checkpoint yet" : "The last good checkpoint is ",
       kept.empty() ? "" : kept.back().c_str(), clip);
}

// A model that computes nothing must not take the place of the last good one: the loss of a step says what its weights
// were before the update.
static bool computes(const Kernels& kernels, const Model& model, const ModelParams& params,
                     const std::vector<Batch>& probe) {
  if (find_not_finite(model)) return false;
  for (const PassResult& r : evaluate_passes(kernels, model.config, params, probe, {0, 1}))
    if (!std::isfinite(r.loss)) return false;
  return true;
}

void Trainer::save() {
  if (step_ == last_saved_) return;
  weights_->read_back();
  if (!computes(*kernels_, *model_, weights_->params(), probe_))
    fail_broken("the weights or their loss on held-out text are not finite");
  Json state = Json::object({{"step", step_},
                             {"epoch", loader_->position().epoch},
                             {"epoch_shard", loader_->position().shard},
                             {"epoch_row", loader_->position().row},
                             {"data_checksum", int64_t(data_.checksum)},
                             {"held_out_checksum", int64_t(data_.held_out_checksum)},
                             {"log_begins", log_begins_},
                             {"tokens", costs_.tokens},
                             {"token_passes", costs_.token_passes},
                             {"rows", costs_.rows},
                             {"flops", costs_.flops},
                             {"seconds", costs_.seconds},
                             {"feedback_trained", feedback_trained()},
                             {"spikes", spikes_.record()},
                             {"spikes_skipped", spikes_skipped_},
                             {"flags", record_flags_}});
  Json given = Json::array();
  for (const std::string& name : given_) given.items.push_back(name);
  state.set("given", given);
  Json counts = Json::array();
  for (int64_t n : optimizer_->step_counts()) counts.items.push_back(n);
  state.set("update_counts", counts);
  CheckpointContents contents{tensor_views(model_->layout, model_->block.data()), optimizer_->state(),
                              to_json(model_->config), state,
                              data_.tokenizer.reads_text() ? data_.tokenizer.to_json() : ""};
  std::string path = save_checkpoint(o_.out, step_, contents, {o_.keep, o_.keep_every});
  last_saved_ = step_;
  progress_->print(text("saved %s\n", path.c_str()));
}

// --- Steps

// Shows the micro-batches of the step that begins at `start` one by one: all at once would take memory that no plan
// counts. False where a signal asks to stop in between; the loader is back at the step's start then.
bool Trainer::read_step(DataPosition start, const std::function<void(const Batch&)>& show) {
  loader_->seek(start);
  for (int64_t i = 0; i < accumulation_; ++i) {
    if (i > 0 && stop_signal()) {
      loader_->seek(start);
      return false;
    }
    show(loader_->next(o_.batch));
  }
  return true;
}

// Each target weighs one part in all of the step's, so they are counted before any is used.
bool Trainer::begin_step(Step& step) {
  step.start = loader_->position();
  step.passes = schedule_->draw(uint64_t(o_.seed), step_, o_.steps);
  step.z_loss = in_cooldown(o_.optim, step_, o_.steps) ? o_.optim.z_loss : 0;
  return read_step(step.start, [&](const Batch& batch) {
    step.targets += batch.target_count();
    step.tokens += batch.rows();
  });
}

PassPlan Trainer::plan_micro_batch(const Step& step, const Batch& batch, int first_segment) const {
  auto prefix = draw_prefixes(batch, step.passes, o_.pass, step_, first_segment);
  return plan_passes(batch, step.passes, std::move(prefix), o_.pass, step_, first_segment, step.targets);
}

void Trainer::add_gradients(Step& step, const Batch& batch, const PassPlan& plan) {
  runner_->forward(weights_->params(), batch, plan);
  runner_->backward(weights_->params(), grad_views_, batch, plan, step.z_loss, step.losses);
  step.trains_feedback |= plan.trains_feedback();
  step.rows += plan.rows();
  step.flops += step_flops(model_->config, batch, plan);
}

bool Trainer::gradients(Step& step) {
  int first_segment = 0;
  kernels_->floats->zero(grads_.data(), int64_t(grads_.size()));
  return read_step(step.start, [&](const Batch& batch) {
    add_gradients(step, batch, plan_micro_batch(step, batch, first_segment));
    first_segment += int(batch.segments.size());
  });
}

// False where a signal ended it half-way: then nothing has changed.
bool Trainer::train_step() {
  double start = seconds_now();
  Step step;
  if (!begin_step(step)) return false;
  if (step.targets == 0) {
    log_->write(Json::object({{"step", step_ + 1}, {"skipped", "no row has a target"}}));
    ++step_;
    return true;
  }
  if (!gradients(step)) return false;
  double norm = optimizer_->gradient_norm(grads_.data(), step.trains_feedback);
  double objective = objective_of(step.losses, o_.pass, step.z_loss).total();
  if (!std::isfinite(objective) || !std::isfinite(norm))
    fail_broken(text("the loss is %g and the gradient norm %g", objective, norm));
  step.skipped = o_.skip_spikes > 0 && spikes_.is_spike(step.passes, objective, norm, double(o_.skip_spikes));
  if (step.skipped) {
    ++spikes_skipped_;
  } else {
    optimizer_->step(weights_->floats(), grads_.data(), norm, step.trains_feedback, step_, o_.steps);
    weights_->changed();
  }
  costs_.tokens += step.tokens;
  costs_.token_passes += double(step.tokens) * step.passes;
  double seconds = seconds_now() - start;
  costs_.rows += step.rows, costs_.flops += step.flops, costs_.seconds += seconds;
  pace_.add(double(step.tokens), step.rows, step.flops, seconds);
  log_step(step, norm, seconds);
  ++step_;
  return true;
}

std::vector<std::string> show_step(const StepNumbers& n) {
  std::vector<std::string> parts = {text("%lld/%lld", (long long)n.step, (long long)n.steps),
                                    "  " + n.time_left + " left"};
  for (size_t k = 0; k < n.loss.size(); ++k) parts.push_back(text(k == 0 ? "  loss %.3g" : " %.3g", n.loss[k]));
  parts.push_back("  " + show_count(n.tokens_per_second) + " tok/s");
  parts.push_back(text("  MFU %.0f %%", 100 * n.utilization));
  parts.push_back(text("  |g| %.2f", n.gradient_norm));
  return parts;
}

void Trainer::log_step(const Step& step, double norm, double seconds) {
  const PassLosses& losses = step.losses;
  Json per_pass = Json::array();
  recent_loss_.resize(std::max(recent_loss_.size(), losses.loss.size()));
  for (size_t k = 0; k < losses.loss.size(); ++k) {
    double loss = losses.mean(int(k));
    per_pass.items.push_back(loss);
    recent_loss_[k] = recent_loss_[k] == 0 ? loss : 0.98 * recent_loss_[k] + 0.02 * loss;
  }
  Objective objective = objective_of(losses, o_.pass, step.z_loss);
  float lr = float(double(o_.optim.lr) * schedule(o_.optim, step_, o_.steps));
  Json line = Json::object({{"step", step_ + 1},
                            {"passes", step.passes},
                            {"loss", objective.loss},
                            {"z_loss", objective.z_loss},
                            {"objective", objective.total()},
                            {"loss_per_pass", per_pass},
                            {"grad_norm", norm},
                            {"lr", lr},
                            {"tokens", costs_.tokens},
                            {"tokens_per_s", double(step.tokens) / seconds},
                            {"ms", 1000 * seconds},
                            {"flops", costs_.flops},
                            {"mfu", utilization(step.flops, seconds)},
                            {"time", time_of_day()},
                            {"device", kernels_->in_host_memory ? kernels_->name : kernels_->device},
                            {"memory_bytes", plan_.total()}});
  if (step.skipped) line.set("skipped", "a spike");
  log_->write(line);
  if (step.skipped)
    progress_->print(text("step %lld: left out, a spike: objective %.4g, gradient norm %.4g\n", (long long)step_ + 1,
                          objective.total(), norm));
  progress_->update(double(step_ + 1) / double(o_.steps),
                    show_step({step_ + 1, o_.steps, time_left(), recent_loss_, pace_.tokens / pace_.seconds,
                               utilization(pace_.flops, pace_.seconds), norm}));
}

// After the step that is being logged, at the current time a row; later steps may take more passes.
std::string Trainer::time_left() const {
  int64_t done = step_ + 1;
  double rows = expected_rows(double(done) / double(o_.steps)) * pace_.tokens / pace_.steps;
  return show_duration(double(o_.steps - done) * rows * pace_.seconds / pace_.rows);
}

// The first batches that hold at least so many tokens; at least one, where there is any.
static std::vector<Batch> first_tokens(const std::vector<Batch>& batches, double tokens) {
  std::vector<Batch> part;
  double sum = 0;
  for (const Batch& batch : batches) {
    if (sum >= tokens && !part.empty()) break;
    part.push_back(batch), sum += batch.rows();
  }
  return part;
}

// As the log has it. `bytes`: of the targets.
static Json held_out_line(int64_t step, const std::vector<PassResult>& results, int64_t bytes) {
  Json losses = Json::array(), bits = Json::array();
  for (const PassResult& r : results) losses.items.push_back(r.loss), bits.items.push_back(bits_per_byte(r, bytes));
  Json line = Json::object({{"step", step}, {"val_loss", losses}});
  if (bytes > 0) line.set("val_bits_per_byte", bits);
  return line;
}

std::string show_held_out(int64_t step, const std::vector<PassResult>& results, int passes_trained, int64_t bytes) {
  std::vector<std::string> words = {text("step %lld:", (long long)step), "held-out loss"};
  std::string passes;
  for (const PassResult& r : results)
    if (r.fused_passes < passes_trained) passes += (passes.empty() ? "" : ", ") + std::to_string(r.fused_passes);
  if (passes != "0") words.push_back("after " + passes + " fused passes");
  words.back() += ":";
  double bits = 0;  // after the last of these
  for (const PassResult& r : results)
    if (r.fused_passes < passes_trained) words.push_back(text("%.4f", r.loss)), bits = bits_per_byte(r, bytes);
  if (bits > 0) words.push_back(text("(%.4f bits a byte)", bits));
  return wrapped(words, 2);
}

// Losses on a part of the held-out text, without the long iterations of the final table. Those of passes that no step
// has taken yet are in the log alone: on the screen they would look as if training diverged.
void Trainer::evaluate_held_out() {
  measure_peak();
  std::vector<Batch> part = first_tokens(validation_, double(o_.val_tokens));
  bool fused = feedback_trained() || schedule_->most_passes() > 1;
  ModelConfig shown_as = as_trained(model_->config, fused);
  std::vector<PassResult> results = evaluate_passes(*kernels_, shown_as, weights_->params(), part, {0, 1, 2, 3});
  int64_t bytes = target_bytes(data_.tokenizer, part);
  log_->write(held_out_line(step_, results, bytes));
  progress_->print(show_held_out(step_, results, passes_trained(), ask_anything(data_.puzzles) ? 0 : bytes));
}

// The beginning of a held-out document: half of it, `most` tokens at most.
std::vector<int> Trainer::sample_prompt(int64_t number, int most) const {
  constexpr int64_t kDocuments = 64;
  const Tokens& tokens = data_.validation[0];
  std::vector<Document> documents;
  for (Document d : Documents(tokens, data_.vocabulary.end_of_text))
    if (documents.push_back(d); documents.size() == kDocuments) break;
  if (documents.empty()) return {data_.vocabulary.end_of_text};
  Document d = documents[size_t(number) % documents.size()];
  std::vector<int> prompt;
  for (int64_t i = 0; i < std::clamp<int64_t>(d.length() / 2, 1, most); ++i) prompt.push_back(tokens[d.begin + i]);
  return prompt;
}

void Trainer::show_sample() {
  DecodeMode mode = feedback_trained() ? DecodeMode::soft : DecodeMode::standard;
  size_t number = size_t(step_) / std::max(1, o_.sample_every);
  if (!data_.puzzles.empty() && !data_.puzzles[number % data_.puzzles.size()].answers.empty()) {
    std::vector<std::string> said;
    const Puzzle& puzzle = data_.puzzles[number % data_.puzzles.size()];
    answer_puzzles(*kernels_, model_->config, weights_->params(), data_.tokenizer, {puzzle}, mode, 1, &said);
    progress_->print(text("step %lld: %s answers %s\n", (long long)step_, name_of(mode), said[0].c_str()));
    return;
  }
  std::vector<int> prompt = sample_prompt(int64_t(number), std::min(24, o_.model.context / 2));
  Decoder decoder(*kernels_, model_->config, weights_->params(), {1, 64, o_.model.context});
  Generation g;
  g.mode = mode, g.tokens = 64, g.sampling.temperature = 0.8f, g.seed = uint64_t(o_.seed);
  std::string said = generate(decoder, data_.tokenizer, {prompt}, step_, g, nullptr, nullptr)[0].text;
  std::string shown;
  for (char c : visible(data_.tokenizer.decode(prompt) + "│" + said))
    shown += c == '\n' ? std::string("⏎") : std::string(1, c);
  progress_->print(text("step %lld: %s says %s\n", (long long)step_, name_of(mode), shown.c_str()));
}

bool Trainer::run() {
  show_notes();
  std::fputs(plan_text().c_str(), stdout);
  if (step_ > 0) std::printf("resumed  %s, at step %lld\n", resumed_from_.folder().c_str(), (long long)step_);
  std::fflush(stdout);
  progress_ = std::make_unique<Progress>(stdout);
  auto due = [&](int every) { return every > 0 && step_ % every == 0 && step_ < o_.steps; };
  while (step_ < o_.steps) {
    bool whole = train_step();
    if (whole && due(o_.eval_every)) evaluate_held_out();
    if (whole && due(o_.sample_every)) show_sample();
    bool stop = stop_signal() != 0;
    if ((whole && (due(o_.save_every) || due(o_.keep_every))) || step_ == o_.steps || stop) save();
    if (stop && step_ < o_.steps) {
      progress_->finish();
      std::printf("stopped at step %lld; continue with: %s --resume --out %s\n", (long long)step_,
                  sibling("train").c_str(), shell_word(o_.out).c_str());
      return false;
    }
  }
  save();  // where a finished run is continued elsewhere, there was no step
  progress_->finish();
  return true;
}

// Has the log this step's final evaluation already? A finished run may be resumed just to see its table again.
static bool ends_with_table(const std::string& log, int64_t step) {
  std::string lines = file_exists(log) ? read_file(log) : "";
  if (lines.empty()) return false;
  size_t begin = lines.rfind('\n', lines.size() - 2) + 1;  // npos + 1 = 0
  try {
    Json last = parse_json(lines.substr(begin), log);
    return last.find("final") && last.get_int("step", log) == step;
  } catch (const Error&) {  // somebody else's line
    return false;
  }
}

// A prompt to begin with, from the held-out part: a puzzle up to its first answer, or a text's first words.
std::string Trainer::first_prompt() const {
  int context = o_.model.context;
  if (!data_.tokenizer.reads_text()) return "";
  std::string words = data_.tokenizer.decode(sample_prompt(0, std::min(8, context / 2)));
  words = words.substr(0, words.find('\n')).substr(0, 32);
  words = words.substr(0, words.rfind(' '));
  return visible(words) == words ? words : "";
}

std::string Trainer::talk_line() const {
  std::string command = sibling("sample") + " --model " + shell_word(o_.out);
  if (data_.made && !main_tasks(parse_task_mix(o_.data)).empty()) return command;  // it asks puzzles
  std::string prompt = first_prompt();
  return command + (feedback_trained() ? " --mode soft" : " --mode standard") +
         (prompt.empty() ? "" : " --prompt " + shell_word(prompt));
}

// As many of the held-out tokens as --final-eval says, each of which takes `fused_passes` + 1 forward passes. Where it says
// nothing, the evaluation takes about a tenth of what the training took, whose rows go forward and back; but it reads as
// much as the evaluations on the way do.
std::vector<Batch> Trainer::final_batches(int fused_passes) const {
  constexpr double kShare = 0.1, kForwardAndBack = 3;
  double tenth = kShare * kForwardAndBack * costs_.rows / (fused_passes + 1);
  return first_tokens(validation_, o_.final_eval > 0 ? double(o_.final_eval) : std::max(tenth, double(o_.val_tokens)));
}

void Trainer::report() {
  measure_peak();
  double start = seconds_now();
  ModelConfig shown_as = as_trained(model_->config, feedback_trained());
  std::vector<int> passes = parse_fused_passes("eval-passes", o_.eval_passes);
  Evaluation e = evaluate(*kernels_, shown_as, weights_->params(), data_.tokenizer, final_batches(passes.back()),
                          data_.puzzles, passes, EvaluationProgress(stdout).watch());
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double memory = double(usage.ru_maxrss) * 1024;
  Json line = held_out_line(step_, e.passes, e.bytes);
  line.set("final", true), line.set("peak_memory_bytes", memory);
  if (step_ > first_step_ || !ends_with_table(o_.out + "/log.jsonl", step_)) log_->write(line);
  write_file(o_.out + "/evaluation.json", write_json_indented(to_json(e, data_.puzzles)) + "\n");
  std::printf("\n%s\n", show_evaluation(e, data_.puzzles).c_str());
  std::vector<std::string> trained = {
      show_count(double(costs_.tokens)) + " tokens",
      show_count(costs_.token_passes) + " token-equivalents (tokens × passes)",
      show_count(costs_.rows) +
          text(" row-equivalents (%.2f rows a token)", costs_.rows / std::max(1.0, double(costs_.tokens))),
      text("%.2e FLOP", costs_.flops)};
  if (spikes_skipped_ > 0) trained.push_back(text("%lld spikes left out", (long long)spikes_skipped_));
  double seconds = costs_.seconds - costs_before_.seconds;
  std::string mfu;  // of this process's steps: those before may have run elsewhere
  if (seconds > 0) mfu = text(", MFU %.0f %%", 100 * utilization(costs_.flops - costs_before_.flops, seconds));
  std::vector<std::string> took = {
      show_duration(costs_.seconds) +
          text(" of steps (%.1f GFLOP/s%s)", costs_.flops / std::max(1e-9, costs_.seconds) / 1e9, mfu.c_str()),
      show_duration(seconds_now() - start) + " of final evaluation", "peak memory " + show_bytes(memory)};
  std::printf("%s%s", named_line("trained", trained).c_str(), named_line("took", took).c_str());
  std::printf("talk     %s\n", talk_line().c_str());
}
