// The small worlds of the corpus, one function each. What a document of each looks like stands in docs and at the
// function.
#pragma once
#include <string>

#include "corpus.h"
#include "random.h"

// A puzzle, and the part of it that its answers follow from: what must not be in both splits.
struct Draft {
  Puzzle puzzle;
  std::string core;
};

// A puzzle of at most `longest` bytes, longest ≥ kShortestPuzzle.
Draft draw_puzzle(Task task, Random* random, int longest);

// Answers with their working, as of `47+85:` and of `3/7 to 3:`. a and b have as many digits; above < below.
std::string worked_sum(int64_t a, int64_t b);
std::string worked_fraction(int above, int below, int places);

// A story of at most `longest` bytes, for draw_puzzle: src/stories.cpp.
std::string draw_story(Random* random, int longest);
