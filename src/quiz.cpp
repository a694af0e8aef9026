#include "quiz.h"

#include <algorithm>

#include "error.h"
#include "evaluate.h"
#include "log.h"
#include "questions.h"
#include "training_data.h"

std::optional<TaskMix> mix_of(const Checkpoint& checkpoint) {
  DataOptions trained_on;
  trained_on.data = recorded_flag(checkpoint, "data");
  trained_on.format = recorded_flag(checkpoint, "format");
  if (!names_corpus(trained_on)) return {};
  TaskMix mix = parse_task_mix(trained_on.data);
  if (main_tasks(mix).empty()) return {};
  return mix;
}

Quiz::Quiz(const Kernels& kernels, const ModelConfig& config, const ModelParams& params, const Tokenizer& tokenizer,
           Setting setting)
    : kernels_(kernels),
      config_(config),
      params_(params),
      tokenizer_(tokenizer),
      setting_(std::move(setting)),
      tasks_(main_tasks(setting_.mix)) {}

std::string Quiz::welcome() const {
  std::string out;
  for (Task task : tasks_) {
    World world = world_of(task);
    out += wrapped({text("%s: %s, as in %s", name_of(task), world.rules, world.example)}, 2, stderr);
  }
  return out + wrapped({"Type a text that ends with a question;", "Enter shows a held-out puzzle;", "Ctrl-D ends."}, 0,
                       stderr);
}

std::string Quiz::held_out() {
  for (;;) {
    Puzzle puzzle = make_puzzle(setting_.mix, Split::validation, uint64_t(setting_.seed), next_++, config_.context);
    if (std::count(tasks_.begin(), tasks_.end(), puzzle.task) > 0) return answers(puzzle, 0);
  }
}

std::string Quiz::answer(const std::string& question) {
  std::optional<Puzzle> puzzle = read_question(question);
  if (!puzzle) return text("no question of this model's puzzles: type one like %s\n", world_of(tasks_[0]).example);
  size_t length = tokenize(*puzzle, tokenizer_).tokens.size();
  if (int(length) > config_.context)
    return text("too long: %zu tokens with the answer; the context is %d\n", length, config_.context);
  return answers(*puzzle, question.size());
}

// Lines of the right text and of each mode's, from `begin` up to the last answer.
std::string Quiz::answers(const Puzzle& puzzle, size_t begin) const {
  size_t end = size_t(puzzle.answers.back().start + puzzle.answers.back().length);
  size_t all = puzzle.answers.size();
  std::string count = all > 1 ? std::string(text("%zu of %zu", all, all).size() + 2, ' ') : "";
  std::string out = text("  %-12s%s", "right", count.c_str()) + puzzle.text.substr(begin, end - begin) + "\n";
  for (DecodeMode mode : setting_.modes) {
    std::vector<std::string> said;
    std::vector<bool> right =
        answer_puzzles(kernels_, config_, params_, tokenizer_, {puzzle}, mode, setting_.prefill_passes, &said);
    size_t same = size_t(std::count(right.begin(), right.end(), true));
    if (all > 1) count = text("%*zu of %zu  ", int(std::to_string(all).size()), same, all);
    out += text("  %-12s%s", capitals_of(mode).c_str(), count.c_str()) + said[0].substr(begin) + "\n";
  }
  return out;
}
