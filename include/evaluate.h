// What a model can do: losses after n fused passes over held-out text, and answers to held-out puzzles in each decoding
// mode.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "corpus.h"
#include "decode.h"
#include "log.h"
#include "passes.h"
#include "tokenizer.h"

// One line of the table by passes: every row but a segment's first fused, from the states of the pass before.
struct PassResult {
  int fused_passes;    // after the plain pass
  double loss;         // mean cross-entropy over all targets
  double accuracy;     // share of targets that are the most likely token
  double update_norm;  // mean over rows of ‖h^k − h^{k−1}‖; 0 for the plain pass
  int64_t targets;
};
// Told what is being done, and how much of it is done, from 0 to 1; may be empty.
using Watch = std::function<void(double done, const std::string& what)>;

// `fused_passes` increases.
std::vector<PassResult> evaluate_passes(const Kernels&, const ModelConfig&, const ModelParams&,
                                        const std::vector<Batch>& batches, const std::vector<int>& fused_passes,
                                        const Watch& watch = {});

// How the model answered: one entry for each answer of each puzzle, in order. The world's tokens are given, the model's
// own are fed back. said (may be null) gets one text a puzzle that has answers: the dialogue as it went, wrong answers
// marked [said≠right].
std::vector<bool> answer_puzzles(const Kernels&, const ModelConfig&, const ModelParams&, const Tokenizer&,
                                 const std::vector<Puzzle>&, DecodeMode, int prefill_passes,
                                 std::vector<std::string>* said = nullptr, const Watch& watch = {});

// Right and all, by task and by the puzzle's length.
struct Score {
  int right = 0, all = 0;
  void add(bool correct) { right += correct, ++all; }
  double share() const { return all > 0 ? double(right) / all : 0; }
};

std::vector<DecodeMode> modes_of(const ModelConfig&);  // in which a model can decode

// Of the text that the targets are, where the tokenizer knows it; else 0. An end of text is none.
int64_t target_bytes(const Tokenizer&, const std::vector<Batch>&);
// What a mean loss over the targets comes to for each of their bytes, in bits, which different tokenizers share; 0 where
// there are none.
double bits_per_byte(const PassResult&, int64_t bytes);

// Do they have answers, or are they stories? Of answers alone bits per byte say nothing.
bool ask_anything(const std::vector<Puzzle>&);

struct Evaluation {
  int64_t bytes = 0;  // of the targets
  std::vector<PassResult> passes;
  std::vector<DecodeMode> modes;
  std::vector<std::vector<bool>> answers;  // a mode, as answer_puzzles gives them
};
// Everything: the table at the end of a run and of ./eval. `puzzles` may be empty.
Evaluation evaluate(const Kernels&, const ModelConfig&, const ModelParams&, const Tokenizer&,
                    const std::vector<Batch>& batches, const std::vector<Puzzle>& puzzles,
                    const std::vector<int>& fused_passes, const Watch& watch = {});

// Shows how far an evaluation is, while it goes on.
class EvaluationProgress {
 public:
  explicit EvaluationProgress(FILE* out) : progress_(out) {}
  ~EvaluationProgress() { progress_.erase(); }
  Watch watch();  // as long as this lives

 private:
  Progress progress_;
  std::string what_;
  double start_ = 0;
};

std::string show_evaluation(const Evaluation&, const std::vector<Puzzle>& puzzles);
Json to_json(const Evaluation&, const std::vector<Puzzle>& puzzles);

constexpr int kEvaluationRows = 1024;  // rows of a validation batch
constexpr const char* kReportedPasses = "0,1,2,3,5,10,30";
// The numbers of fused passes in a list like the one above; `flag` names it in messages. Fails where they do not start at 0
// and increase, or are more than 1000.
std::vector<int> parse_fused_passes(const std::string& flag, const std::string& list);
// Of an evaluation with or without puzzles, or of a sample.
void plan_evaluation_memory(Plan&, const Kernels&, const ModelConfig&, int batch_rows, bool puzzles);
