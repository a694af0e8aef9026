// What a model can do: losses after n fused passes over held-out text, and answers to held-out puzzles in each decoding
// mode.
#pragma once
#include <string>
#include <vector>

#include "corpus.h"
#include "decode.h"
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
std::vector<PassResult> evaluate_passes(const Kernels&, const ModelConfig&, const ModelParams&,
                                        const std::vector<Batch>& batches, const std::vector<int>& fused_passes);

// How the model answered: one entry for each answer of each puzzle, in order. The world's tokens are given, the model's
// own are fed back. said (may be null) gets one text a puzzle that has answers: the dialogue as it went, wrong answers
// marked [said≠right].
std::vector<bool> answer_puzzles(const Kernels&, const ModelConfig&, const ModelParams&, const Tokenizer&,
                                 const std::vector<Puzzle>&, DecodeMode, int prefill_passes,
                                 std::vector<std::string>* said = nullptr);

// Right and all, by task and by the puzzle's length.
struct Score {
  int right = 0, all = 0;
  void add(bool correct) { right += correct, ++all; }
  double share() const { return all > 0 ? double(right) / all : 0; }
};

struct Evaluation {
  std::vector<PassResult> passes;
  std::vector<DecodeMode> modes;
  std::vector<std::vector<bool>> answers;  // a mode, as answer_puzzles gives them
};
// Everything: the table at the end of a run and of ./eval. `puzzles` may be empty.
Evaluation evaluate(const Kernels&, const ModelConfig&, const ModelParams&, const Tokenizer&,
                    const std::vector<Batch>& batches, const std::vector<Puzzle>& puzzles);
std::string show_evaluation(const Evaluation&, const std::vector<Puzzle>& puzzles);
Json to_json(const Evaluation&, const std::vector<Puzzle>& puzzles);

constexpr int kEvaluationRows = 1024;  // rows of a validation batch
const std::vector<int> kReportedPasses = {0, 1, 2, 3, 5, 10, 30};
// Of an evaluation with or without puzzles, or of a sample.
void plan_evaluation_memory(Plan&, const Kernels&, const ModelConfig&, int batch_rows, bool puzzles);
