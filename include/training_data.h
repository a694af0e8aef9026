// What ./train and ./eval read: a text file, or the built-in corpus.
#pragma once
#include <string>
#include <vector>

#include "corpus.h"
#include "data.h"

struct TrainingData {
  std::vector<std::string> description;  // parts of a sentence
  Documents train, validation;
  std::vector<Puzzle> puzzles;  // held out; empty for text files
  uint32_t checksum = 0;        // of the training tokens: a resumed run must find the same
};

// `name`: as --data takes it. The corpus is made for documents of at most `context` tokens.
TrainingData read_training_data(const std::string& name, int context, int64_t seed);
