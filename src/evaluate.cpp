#include "evaluate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "error.h"
#include "exact.h"
#include "json.h"
#include "log.h"
#include "sampler.h"

// --- Fused passes over held-out text

namespace {

struct Buffers {
  Tape tape;
  FeedbackTape feedback;
  EmbeddedTokens tokens;
  act *states, *scored, *logits;
  double* loss;  // a row of scored
  int* best;
};

constexpr int kLogitRows = 256;

void cut(Cutter& cutter, Buffers& b, const ModelConfig& c, size_t rows) {
  size_t n = rows * c.width;
  b.tape = cut_tape(cutter, c, TapeKind::inference, rows, rows);
  b.feedback = c.fusion == Fusion::none ? FeedbackTape{} : cut_feedback_tape(cutter, c, rows);
  b.tokens = cut_embedded_tokens(cutter, c, rows, c.fusion != Fusion::none);
  b.states = cutter.acts(n), b.scored = cutter.acts(size_t(kLogitRows) * c.width);
  b.logits = cutter.acts(size_t(kLogitRows) * c.vocab);
  b.loss = reinterpret_cast<double*>(cutter.floats(2 * kLogitRows));
  b.best = reinterpret_cast<int*>(cutter.floats(kLogitRows));
}

// Iterates fused passes over one batch.
class FusedPasses {
 public:
  FusedPasses(const Kernels& run, const ModelConfig& c, const ModelParams& params, size_t rows)
      : run_(run),
        c_(c),
        params_(params),
        rope_(rope_block(run, c, c.context)),
        stack_{run, c, rope_.data()},
        feedback_{run, c} {
    Cutter count(run);
    cut(count, b_, c, rows);
    memory_ = Block(run, count.used());
    Cutter cutter(run, memory_.data());
    cut(cutter, b_, c, rows);
  }

  void begin(const Batch& batch) {
    batch_ = &batch;
    feedback_.embed(params_, b_.tokens, batch.tokens.data(), batch.rows(), true);
    InputRows all_plain;
    rows_ = {};
    for (const Segment& s : batch.segments)
      for (int row = s.row; row < s.row + s.rows; ++row) {
        all_plain.add_plain(row, row);
        if (row == s.row)
          rows_.add_plain(row, row);
        else
          rows_.add_fused(row, row, row - 1);
      }
    run_stack(all_plain);
  }

  // One fused pass; returns the sum over rows of ‖h^k − h^{k−1}‖.
  double step() {
    int N = batch_->rows(), D = c_.width;
    run_.scale(b_.states, b_.tape.h, 1, int64_t(N) * D);
    run_stack(rows_);
    OnHost before(run_, b_.states, size_t(N) * D), now(run_, b_.tape.h, size_t(N) * D);
    double total = 0;
    for (int row = 0; row < N; ++row) {
      double square = 0;
      for (int i = 0; i < D; ++i) {
        double change = double(now[size_t(row) * D + i]) - double(before[size_t(row) * D + i]);
        square += change * change;
      }
      total += std::sqrt(square);
    }
    return total;
  }

  // Adds the current states' losses and right answers.
  void score(PassResult& result) {
    std::vector<int> rows, target;
    for (int row = 0; row < batch_->rows(); ++row)
      if (batch_->targets[row] >= 0) rows.push_back(row), target.push_back(batch_->targets[row]);
    double loss[kLogitRows];
    int best[kLogitRows];
    for (size_t i = 0; i < rows.size(); i += kLogitRows) {
      int count = int(std::min(rows.size() - i, size_t(kLogitRows)));
      run_.gather_rows(b_.scored, b_.tape.h, &rows[i], count, c_.width);
      run_.matmul_forward(b_.logits, b_.scored, params_.embedding, count, c_.width, c_.vocab);
      run_.cross_entropy(b_.loss, nullptr, b_.best, b_.logits, &target[i], nullptr, 0, count, c_.vocab);
      run_.download(loss, b_.loss, count * sizeof *loss);
      run_.download(best, b_.best, count * sizeof *best);
      for (int j = 0; j < count; ++j) result.loss += loss[j], result.accuracy += best[j] == target[i + j];
    }
    result.targets += int64_t(rows.size());
  }

 private:
  void run_stack(const InputRows& rows) {
    feedback_.forward(params_, b_.feedback, b_.tape.layers[0].x, b_.tokens, b_.states, rows);
    stack_.forward(params_, b_.tape, 0, batch_->rows(), batch_->segments);
  }

  const Kernels& run_;
  const ModelConfig& c_;
  const ModelParams& params_;
  Block rope_, memory_;
  Buffers b_;
  Stack stack_;
  Feedback feedback_;
  const Batch* batch_ = nullptr;
  InputRows rows_;  // of a fused pass
};

}  // namespace

std::vector<PassResult> evaluate_passes(const Kernels& run, const ModelConfig& c, const ModelParams& params,
                                        const std::vector<Batch>& batches, const std::vector<int>& fused_passes,
                                        const Watch& watch) {
  std::vector<PassResult> results;
  for (int n : fused_passes)
    if (n == 0 || c.fusion != Fusion::none) results.push_back({n, 0, 0, 0, 0});
  int64_t rows = 0;
  size_t largest = 0;
  for (const Batch& batch : batches) rows += batch.rows(), largest = std::max(largest, size_t(batch.rows()));
  FusedPasses passes(run, c, params, largest);
  double forwards = 0, all = double(batches.size()) * (results.empty() ? 1 : results.back().fused_passes + 1);
  auto tell = [&] {
    if (watch) watch(++forwards / all, "held-out text");
  };
  for (const Batch& batch : batches) {
    passes.begin(batch);
    tell();
    double update = 0;
    int done = 0;
    for (PassResult& result : results) {
      for (; done < result.fused_passes; ++done) update = passes.step(), tell();
      passes.score(result);
      result.update_norm += result.fused_passes > 0 ? update : 0;
    }
  }
  for (PassResult& r : results)
    if (r.targets > 0) r.loss /= double(r.targets), r.accuracy /= double(r.targets), r.update_norm /= double(rows);
  return results;
}

int64_t target_bytes(const Tokenizer& tokenizer, const std::vector<Batch>& batches) {
  if (!tokenizer.reads_text()) return 0;
  int64_t bytes = 0;
  for (const Batch& batch : batches)
    for (int target : batch.targets)
      if (target >= 0 && !tokenizer.is_special(target)) bytes += int64_t(tokenizer.bytes_of(target).size());
  return bytes;
}

bool ask_anything(const std::vector<Puzzle>& puzzles) {
  return std::any_of(puzzles.begin(), puzzles.end(), [](const Puzzle& puzzle) { return !puzzle.answers.empty(); });
}

double bits_per_byte(const PassResult& r, int64_t bytes) {
  return bytes > 0 ? r.loss * double(r.targets) / std::log(2.0) / double(bytes) : 0;
}

// --- Puzzles

namespace {

// How many puzzles are answered at a time: their caches take sequences × context rows a layer.
int sequences_for(const ModelConfig& c) {
  constexpr int kMost = 256, kPositions = 1 << 14;
  return std::clamp(kPositions / c.context, 1, kMost);
}

// One puzzle being answered.
struct Dialogue {
  std::vector<int> tokens;                  // the text; answers are overwritten by what the model says
  std::vector<int> expected;                // a position: the answer's token, or −1 where the world speaks
  std::vector<PuzzleTokens::Span> answers;  // of tokens
  int begin = 0, end = 0;                   // first and past the last position that the model says
};

Dialogue start_dialogue(const Puzzle& puzzle, const Tokenizer& tokenizer) {
  PuzzleTokens t = tokenize(puzzle, tokenizer);
  Dialogue d;
  d.expected.assign(t.tokens.size(), -1);
  for (PuzzleTokens::Span answer : t.answers)
    std::copy_n(t.tokens.begin() + answer.start, answer.length, d.expected.begin() + answer.start);
  d.begin = t.answers.front().start;
  d.end = t.answers.back().start + t.answers.back().length;
  d.tokens = std::move(t.tokens), d.answers = std::move(t.answers);
  return d;
}

void hold_dialogues(Decoder& decoder, std::vector<Dialogue>& dialogues, DecodeMode mode, int prefill_passes) {
  std::vector<std::vector<int>> prompts;
  for (const Dialogue& d : dialogues) prompts.emplace_back(d.tokens.begin(), d.tokens.begin() + d.begin);
  decoder.prefill(prompts, mode, prefill_passes);
  for (;;) {
    std::vector<int> speaking, live, next;
    for (size_t i = 0; i < dialogues.size(); ++i) {
      int position = decoder.position(int(i));
      if (position < dialogues[i].end && dialogues[i].expected[position] >= 0) speaking.push_back(int(i));
    }
    std::vector<int> said;
    if (!speaking.empty()) said = decoder.sample(speaking, Sampling{0}, std::vector<uint64_t>(speaking.size()));
    for (size_t j = 0; j < speaking.size(); ++j) dialogues[speaking[j]].tokens[decoder.position(speaking[j])] = said[j];
    for (size_t i = 0; i < dialogues.size(); ++i)
      if (decoder.position(int(i)) + 1 < dialogues[i].end)
        live.push_back(int(i)), next.push_back(dialogues[i].tokens[decoder.position(int(i))]);
    if (live.empty()) return;
    decoder.advance(live, next);
  }
}

bool is_right(const Dialogue& d, PuzzleTokens::Span answer) {
  auto from = d.tokens.begin() + answer.start;
  return std::equal(from, from + answer.length, d.expected.begin() + answer.start);
}

// The dialogue as text; a wrong answer shows what was said and what was right.
std::string show_dialogue(const Dialogue& d, const Tokenizer& tokenizer) {
  std::string out;
  int shown = 0;
  auto words = [&](const std::vector<int>& tokens, int begin, int end) {
    return tokenizer.decode(std::vector<int>(tokens.begin() + begin, tokens.begin() + end));
  };
  for (PuzzleTokens::Span answer : d.answers) {
    int end = answer.start + answer.length;
    std::string said = words(d.tokens, answer.start, end), right = words(d.expected, answer.start, end);
    out += words(d.tokens, shown, answer.start) + (is_right(d, answer) ? said : "[" + said + "≠" + right + "]");
    shown = end;
  }
  return out;
}

}  // namespace

std::vector<bool> answer_puzzles(const Kernels& run, const ModelConfig& c, const ModelParams& params,
                                 const Tokenizer& tokenizer, const std::vector<Puzzle>& puzzles, DecodeMode mode,
                                 int prefill_passes, std::vector<std::string>* said, const Watch& watch) {
  std::vector<bool> right;
  int sequences = int(std::min<size_t>(puzzles.size(), size_t(sequences_for(c))));
  DecoderLimits limits{sequences, 256, c.context};
  if (puzzles.empty()) return right;
  Decoder decoder(run, c, params, limits);
  std::vector<const Puzzle*> asked;
  for (const Puzzle& puzzle : puzzles)
    if (!puzzle.answers.empty()) asked.push_back(&puzzle);
  for (size_t first = 0; first < asked.size(); first += limits.sequences) {
    std::vector<Dialogue> dialogues;
    size_t end = std::min(asked.size(), first + limits.sequences);
    for (size_t i = first; i < end; ++i) dialogues.push_back(start_dialogue(*asked[i], tokenizer));
    hold_dialogues(decoder, dialogues, mode, prefill_passes);
    for (const Dialogue& d : dialogues) {
      if (said) said->push_back(show_dialogue(d, tokenizer));
      for (PuzzleTokens::Span answer : d.answers) right.push_back(is_right(d, answer));
    }
    if (watch) watch(double(end) / double(asked.size()), text("puzzles, %s", name_of(mode)));
  }
  return right;
}

// --- The whole

void plan_evaluation_memory(Plan& plan, const Kernels& run, const ModelConfig& c, int batch_rows, bool puzzles) {
  Buffers unused;
  Cutter count(run);
  cut(count, unused, c, batch_rows);
  Plan decoding;
  Decoder::plan_memory(decoding, run, c, {puzzles ? sequences_for(c) : 1, 256, c.context});
  plan.add("evaluation", std::max(double(count.used()) * sizeof(float), decoding.total()));
}

std::vector<DecodeMode> modes_of(const ModelConfig& c) {
  if (c.fusion == Fusion::none) return {DecodeMode::standard};
  return {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential};
}

Evaluation evaluate(const Kernels& run, const ModelConfig& c, const ModelParams& params, const Tokenizer& tokenizer,
                    const std::vector<Batch>& batches, const std::vector<Puzzle>& puzzles,
                    const std::vector<int>& fused_passes, const Watch& watch) {
  Evaluation e;
  e.bytes = target_bytes(tokenizer, batches);
  e.passes = evaluate_passes(run, c, params, batches, fused_passes, watch);
  e.modes = modes_of(c);
  for (DecodeMode mode : e.modes)
    e.answers.push_back(answer_puzzles(run, c, params, tokenizer, puzzles, mode, 1, nullptr, watch));
  return e;
}

std::vector<int> parse_fused_passes(const std::string& flag, const std::string& list) {
  constexpr int kMost = 1000;
  std::vector<int> passes;
  const char *at = list.data(), *end = at + list.size();
  for (bool more = true; more; ++at) {
    int n = -1;
    auto [next, error] = std::from_chars(at, end, n);
    bool follows = passes.empty() ? n == 0 : n > passes.back();
    if (error != std::errc() || !follows || n > kMost || (next < end && *next != ','))
      fail("--%s %s: give numbers of fused passes from 0 up to %d, increasing, such as %s", flag.c_str(), list.c_str(),
           kMost, kReportedPasses);
    passes.push_back(n);
    more = (at = next) < end;
  }
  return passes;
}

Watch EvaluationProgress::watch() {
  return [this](double done, const std::string& what) {
    double now = seconds_now();
    if (what != what_) what_ = what, start_ = now;
    double left = done > 0 && now > start_ ? (now - start_) * (1 - done) / done : -1;
    std::string time_left = left < 0 ? "" : ", " + show_duration(left) + " left";
    progress_.update(done, std::vector<std::string>{"evaluating" + time_left, ": " + what});
  };
}

namespace {

// The rows of the table by task: a task's name, and below the running sums one row for each range of lengths.
std::string length_range(int size) {
  for (int low = 1;; low *= 2)
    if (size < 2 * low) return low == 1 ? "1" : text("%d-%d", low, 2 * low - 1);
}

using Scores = std::vector<std::pair<std::string, std::vector<Score>>>;  // a row's name, a score for each mode

Scores collect_scores(const Evaluation& e, const std::vector<Puzzle>& puzzles) {
  std::map<std::pair<int, int>, std::pair<std::string, std::vector<Score>>> rows;  // by (task, length class)
  size_t i = 0;
  for (const Puzzle& puzzle : puzzles)
    for (const Answer& answer : puzzle.answers) {
      auto add = [&](int length_class, const std::string& name) {
        auto& [row_name, scores] = rows[{int(puzzle.task), length_class}];
        row_name = name;
        scores.resize(e.modes.size());
        for (size_t m = 0; m < e.modes.size(); ++m) scores[m].add(e.answers[m][i]);
      };
      add(0, name_of(puzzle.task));
      int size = std::max(answer.size, 1), length_class = 1;
      while (size >> length_class) ++length_class;
      add(length_class, text("  of length %s", length_range(size).c_str()));
      ++i;
    }
  Scores out;
  for (auto& [key, row] : rows) out.push_back(row);
  return out;
}

}  // namespace

std::string show_evaluation(const Evaluation& e, const std::vector<Puzzle>& puzzles) {
  std::vector<std::vector<std::string>> table = {{"fused passes", "loss", "accuracy", "update norm"}};
  bool is_text = e.bytes > 0 && !ask_anything(puzzles);
  if (is_text) table[0].insert(table[0].begin() + 2, "bits/byte");
  for (const PassResult& r : e.passes) {
    table.push_back({std::to_string(r.fused_passes), text("%.4f", r.loss), text("%.1f %%", 100 * r.accuracy),
                     r.fused_passes > 0 ? text("%.4f", r.update_norm) : "–"});
    if (is_text) table.back().insert(table.back().begin() + 2, text("%.4f", bits_per_byte(r, e.bytes)));
  }
  std::string out = text("Held-out text, %lld targets\n", (long long)(e.passes.empty() ? 0 : e.passes[0].targets));
  out += show_table(table);
  if (e.answers.empty() || e.answers[0].empty()) return out;

  table = {{"exact answers, greedy", "count"}};
  for (DecodeMode mode : e.modes) table[0].push_back(capitals_of(mode));
  for (const auto& [name, scores] : collect_scores(e, puzzles)) {
    table.push_back({name, std::to_string(scores[0].all)});
    for (const Score& score : scores) table.back().push_back(text("%.1f %%", 100 * score.share()));
  }
  return out + "\nHeld-out puzzles\n" + show_table(table);
}

Json to_json(const Evaluation& e, const std::vector<Puzzle>& puzzles) {
  Json passes = Json::array(), answers = Json::array();
  for (const PassResult& r : e.passes) {
    Json pass = Json::object({{"fused_passes", r.fused_passes},
                              {"loss", r.loss},
                              {"accuracy", r.accuracy},
                              {"update_norm", r.update_norm},
                              {"targets", r.targets}});
    if (e.bytes > 0) pass.set("bits_per_byte", bits_per_byte(r, e.bytes));
    passes.items.push_back(pass);
  }
  std::string task;
  for (const auto& [name, scores] : collect_scores(e, puzzles)) {
    bool by_length = name[0] == ' ';
    if (!by_length) task = name;
    Json row = Json::object({{"task", task}, {"count", scores[0].all}});
    if (by_length) row.set("length", name.substr(name.rfind(' ') + 1));
    for (size_t m = 0; m < e.modes.size(); ++m) row.set(name_of(e.modes[m]), scores[m].share());
    answers.items.push_back(row);
  }
  return Json::object({{"passes", passes}, {"answers", answers}});
}
