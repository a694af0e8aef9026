// Questions that a person types: the beginning of a puzzle's text, up to where an answer belongs, and the answer that
// follows from it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "corpus.h"

// The puzzle that this text is the beginning of: `text` with the right answer behind it, which is its only one; what it
// holds of earlier answers stays as it was typed. None where the text is not in any world's format, or asks nothing yet.
std::optional<Puzzle> read_question(const std::string& text);

// What a world is, in one line, and a question of it: for tasks with answers.
struct World {
  const char* rules;
  const char* example;
};
World world_of(Task);

// The tasks with answers that a mix is mainly made of: those with at least half of the largest weight.
std::vector<Task> main_tasks(const TaskMix&);
