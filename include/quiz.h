// Puzzles for a model of the built-in corpus, on a terminal: held-out ones and typed ones, answered in several decoding
// modes side by side, with what is right.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "corpus.h"
#include "decode.h"

// The mix of tasks that a checkpoint was trained on; none where it was trained on texts, or mainly on stories.
std::optional<TaskMix> mix_of(const Checkpoint&);

class Quiz {
 public:
  struct Setting {
    TaskMix mix;
    int64_t seed = 1;  // of the corpus
    std::vector<DecodeMode> modes;
    int prefill_passes = 1;
  };
  Quiz(const Kernels&, const ModelConfig&, const ModelParams&, const Tokenizer&, Setting);

  std::string welcome() const;  // what may be typed
  // The next held-out puzzle: all its text, with each mode's answers in their places, wrong ones as [said≠right].
  std::string held_out();
  // A typed question, and each mode's answer to it. Where it is none, says how one looks.
  std::string answer(const std::string& question);

 private:
  std::string answers(const Puzzle&, size_t begin) const;

  const Kernels& kernels_;
  const ModelConfig& config_;
  const ModelParams& params_;
  const Tokenizer& tokenizer_;
  Setting setting_;
  std::vector<Task> tasks_;  // that the mix is mainly made of
  int64_t next_ = 0;         // held-out puzzle
};
