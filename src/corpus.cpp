// Which puzzle stands where: the mix of tasks, the two splits, and puzzles as documents.
#include "corpus.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "error.h"
#include "flags.h"
#include "puzzles.h"
#include "random.h"
#include "tokenizer.h"

namespace {

constexpr const char* kNames[kTasks] = {"sums",   "registers", "counters",  "memory", "cups",
                                        "chains", "additions", "fractions", "stories"};

// Does a puzzle with this core belong to the validation split? One in sixteen does, the same ones for every seed.
bool held_out(const std::string& core) {
  uint64_t hash = 0;
  for (unsigned char c : core) hash = scatter_bits(hash ^ c);
  return hash % 16 == 0;
}

Task draw_task(const TaskMix& mix, Random* random) {
  double total = 0;
  for (double weight : mix.weight) total += weight;
  check(total > 0, "a mix of no tasks");
  double left = random->uniform() * total;
  int task = 0;
  for (int t = 0; t < kTasks && left >= 0; ++t) {
    if (mix.weight[t] > 0) task = t;
    left -= mix.weight[t];
  }
  return Task(task);
}

int parse_task(const std::string& word, const std::string& mix) {
  for (int t = 0; t < kTasks; ++t)
    if (word == kNames[t]) return t;
  std::string nearest = nearest_word(word, {kNames, kNames + kTasks}), names = "all";
  for (const char* name : kNames) names += std::string(", ") + name;
  if (!nearest.empty())
    fail("no task \"%s\" in the mix \"%s\": did you mean %s?", word.c_str(), mix.c_str(), nearest.c_str());
  fail("no task \"%s\" in the mix \"%s\": there are %s", word.c_str(), mix.c_str(), names.c_str());
}

double parse_weight(const std::string& word, const std::string& mix) {
  double weight = 0;
  const char* last = word.data() + word.size();
  auto [end, error] = std::from_chars(word.data(), last, weight);
  if (error != std::errc() || end != last || !std::isfinite(weight) || weight < 0)
    fail("\"%s\" is no weight in the mix \"%s\": a task's weight is a number from 0", word.c_str(), mix.c_str());
  return weight;
}

// What the world says and the answers by turns: part 2i + 1 is answer i. Parts may be empty.
TextDocument as_document(const Puzzle& puzzle) {
  TextDocument document = {{}, end_is_predictable(puzzle)};
  std::string_view text = puzzle.text;
  size_t said = 0;
  for (const Answer& answer : puzzle.answers) {
    document.parts.push_back({text.substr(said, answer.start - said), false});
    document.parts.push_back({text.substr(answer.start, answer.length), true});
    said = std::min(size_t(answer.start + answer.length), text.size());
  }
  document.parts.push_back({text.substr(said), puzzle.task == Task::stories});
  return document;
}

}  // namespace

const char* name_of(Task task) { return kNames[int(task)]; }

bool end_is_predictable(const Puzzle& puzzle) {
  if (puzzle.task == Task::stories) return true;
  return !puzzle.answers.empty() &&
         puzzle.answers.back().start + puzzle.answers.back().length > int(puzzle.text.size());
}

std::vector<TextDocument> as_documents(const std::vector<Puzzle>& puzzles) {
  std::vector<TextDocument> documents;
  documents.reserve(puzzles.size());
  for (const Puzzle& puzzle : puzzles) documents.push_back(as_document(puzzle));
  return documents;
}

PuzzleTokens tokenize(const Puzzle& puzzle, const Tokenizer& tokenizer) {
  PuzzleTokens result;
  Encoder encoder(tokenizer);
  TextDocument document = as_document(puzzle);
  for (size_t part = 0; part < document.parts.size(); ++part) {
    int start = int(result.tokens.size());
    encoder.encode(document.parts[part].text, &result.tokens);
    if (part % 2 == 1) result.answers.push_back({start, int(result.tokens.size()) - start});
  }
  if (document.end_predictable && !result.answers.empty()) {
    result.tokens.push_back(tokenizer.end_of_text());
    ++result.answers.back().length;
  }
  return result;
}

TaskMix parse_task_mix(const std::string& text) {
  TaskMix mix;
  if (text == "sums") {
    // A small model learns to keep a state from many sums; the rest shows it that there is more than one format.
    for (double& weight : mix.weight) weight = 5.0 / (kTasks - 1);
    mix.weight[int(Task::sums)] = 95;
    return mix;
  }
  if (text == "all") {
    for (double& weight : mix.weight) weight = 1;
    return mix;
  }
  bool given[kTasks] = {};
  double total = 0;
  for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    size_t equals = std::min(item.find('='), item.size());
    int task = parse_task(item.substr(0, equals), text);
    if (given[task]) fail("the task %s stands twice in the mix \"%s\"", kNames[task], text.c_str());
    given[task] = true;
    mix.weight[task] = equals < item.size() ? parse_weight(item.substr(equals + 1), text) : 1;
    total += mix.weight[task];
  }
  if (!(total > 0)) fail("the mix \"%s\" has no task with a weight above 0", text.c_str());
  if (!std::isfinite(total)) fail("the weights of the mix \"%s\" are too large to be added", text.c_str());
  return mix;
}

Puzzle make_puzzle(const TaskMix& mix, Split split, uint64_t seed, int64_t index, int longest) {
  if (longest < kShortestPuzzle)
    fail("no puzzle fits %d tokens: the built-in corpus takes a context of at least %d", longest, kShortestPuzzle);
  uint64_t key = random_key(seed, Purpose::corpus, uint64_t(split), uint64_t(index));
  Random choice(key);
  Task task = draw_task(mix, &choice);  // before the attempts, so that the split does not shift the mix
  for (uint64_t attempt = 0;; ++attempt) {
    Random random(random_key(key, attempt));
    Draft draft = draw_puzzle(task, &random, longest);
    if (held_out(draft.core) == (split == Split::validation)) return std::move(draft.puzzle);
    check(attempt < 10000, "no %s on one side of the split", name_of(task));
  }
}

std::vector<Puzzle> make_puzzles(const TaskMix& mix, Split split, uint64_t seed, int count, int longest) {
  std::vector<Puzzle> puzzles;
  puzzles.reserve(count);
  for (int i = 0; i < count; ++i) puzzles.push_back(make_puzzle(mix, split, seed, i, longest));
  return puzzles;
}
