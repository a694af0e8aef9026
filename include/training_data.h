// What ./train and ./eval read: token files, a text file, or the built-in corpus; and the tokenizer of their tokens.
#pragma once
#include <string>
#include <vector>

#include "config.h"
#include "corpus.h"
#include "data.h"
#include "tokenizer_flags.h"

struct DataOptions {
  std::string data = "sums";            // as --data takes it
  TokenizerFlags tokenizer;             // without a path: the one beside token files, else a BPE trained on the text
  const Tokenizer* of_model = nullptr;  // that of weights that are there already, in place of all these
  int vocab = 512;                      // its ids at most
  int context = 64;                     // the corpus is made for documents of at most so many tokens
  int64_t seed = 1;
  std::string data_flags = {};  // those that ./tokenize data would need for the same tokens: " --vocab 4096"
  std::string format = {};      // "text": a file is read as text, whatever it is; empty: by its looks
};
bool names_token_files(const DataOptions&);  // does --data mean token files?
bool names_corpus(const DataOptions&);       // … the built-in corpus?

struct TrainingData {
  std::vector<std::string> description;  // parts of a sentence
  Tokenizer tokenizer;
  Vocabulary vocabulary;  // the tokenizer's, or what token files are divided by
  std::vector<Tokens> train, validation;
  std::vector<Puzzle> puzzles;  // held out; empty for texts and token files
  bool made = false;            // the built-in corpus, which is there to be seen often
  double document_length = 1;   // mean, in training tokens
  uint32_t checksum = 0;        // of the training tokens: a resumed run must find the same
  uint32_t held_out_checksum = 0;
};

TrainingData read_training_data(const DataOptions&);
// The data that a checkpoint names: where there is nothing under that name any more, the failure says what to do.
TrainingData read_recorded_data(const DataOptions&, const std::string& checkpoint);

// Fails where a model's tokens are others than the data's.
void require_vocabulary(const TrainingData&, const ModelConfig&, const std::string& checkpoint);

constexpr int64_t kHeldOutTokens = 1 << 20;  // that are looked at in an evaluation, at most
