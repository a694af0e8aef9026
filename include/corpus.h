// The built-in corpus: short plain-text documents from small worlds whose answers can be checked, generated from a
// seed.
//
// A document is a dialogue between the world and the model: what the world says (digits drawn at random, the puzzle)
// cannot be predicted and is masked; what follows from it, the answers, are the targets. Each puzzle has a core, most
// often its whole text, which hashes to one side: no core is in both the training and the validation split, whatever
// the seed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data.h"

enum class Task { sums, registers, counters, memory, cups, chains, additions, fractions, stories };
constexpr int kTasks = 9;
const char* name_of(Task);

constexpr int kShortestPuzzle = 32;  // the least `longest`

// What the model is to say: bytes [start, start + length) of the text.
struct Answer {
  int start, length;  // length counts an end-of-text that belongs to it, too: then it ends one beyond the text
  int size;           // how long the puzzle is (digits summed, writes, swaps, steps, …): for the table by length
};

struct Puzzle {
  Task task;
  std::string text;
  std::vector<Answer> answers;  // increasing, not overlapping; empty for stories (all of a story is predictable)
};

// Whether the document's end-of-text is the model's to say.
bool end_is_predictable(const Puzzle& puzzle);

// As documents, answers as parts of their own. They refer to the puzzles' texts.
std::vector<TextDocument> as_documents(const std::vector<Puzzle>& puzzles);

// The same tokens as in the documents, and which of them are the answers.
struct PuzzleTokens {
  struct Span {
    int start, length;
  };
  std::vector<int> tokens;    // with the end-of-text where it belongs to an answer
  std::vector<Span> answers;  // as many as the puzzle has
};
PuzzleTokens tokenize(const Puzzle& puzzle, const Tokenizer& tokenizer);

// The mixes: "sums" (mostly running sums: the default), "all" (every task alike), or a list of tasks with weights, 1
// where none is given: "sums=8,cups=1", "cups". Fails with the task's nearest name.
struct TaskMix {
  double weight[kTasks] = {};
};
TaskMix parse_task_mix(const std::string& text);

// Puzzle number `index` of a split; at most `longest` bytes, hence tokens (fails below kShortestPuzzle). Depends on its
// arguments alone.
enum class Split { train, validation };
Puzzle make_puzzle(const TaskMix& mix, Split split, uint64_t seed, int64_t index, int longest);

// Puzzles [0, count) of a split.
std::vector<Puzzle> make_puzzles(const TaskMix& mix, Split split, uint64_t seed, int count, int longest);
