// What people write: --config files, mixes of tasks, schedules of passes.
#include <cmath>

#include "corpus.h"
#include "flags.h"
#include "fuzz.h"
#include "passes.h"
#include "targets.h"
#include "trainer.h"

namespace {

// ./train's flags, and one of each kind that it has not.
struct AllFlags {
  TrainOptions options;
  std::string resume;
  int64_t count = 3;
  Flags flags{"train", "Trains."};
  AllFlags() {
    add_train_flags(flags, options);
    flags.add("count", &count, "a count", -5, 1LL << 40);
    flags.add_optional("or-nothing", &resume, "latest", "a word or nothing");
  }
};

}  // namespace

void fuzz_config_file(std::string_view bytes) {
  std::string path = "--config=" + put_file("run.conf", bytes), program = "train";
  AllFlags read, set;
  char* arguments[] = {program.data(), path.data()};
  if (!accepts([&] { read.flags.parse(2, arguments); })) return;
  for (const auto& [name, value] : read.flags.values()) set.flags.set(name, value, "state.json");
  require(set.flags.values() == read.flags.values(), "a checkpoint's record gives the flags back");
}

void fuzz_task_mix(std::string_view bytes) {
  TaskMix mix;
  if (!accepts([&] { mix = parse_task_mix(std::string(bytes)); })) return;
  double total = 0;
  for (double weight : mix.weight) {
    require(weight >= 0, "a weight is a number from 0");
    total += weight;
  }
  require(total > 0 && std::isfinite(total), "a mix has tasks");
  for (int i = 0; i < 8; ++i) {
    Puzzle puzzle = make_puzzle(mix, i % 2 ? Split::train : Split::validation, 1, i, 64);
    require(mix.weight[int(puzzle.task)] > 0, "a puzzle is of a task with a weight");
  }
}

void fuzz_passes(std::string_view bytes) {
  constexpr int kMostPasses = 16, kSteps = 12;
  accepts([&] {
    PassSchedule schedule{std::string(bytes)};
    int most = schedule.most_passes();
    require(most >= 1 && most <= kMostPasses, "a step has 1 to 16 passes");
    for (int step = 0; step < kSteps; ++step) {
      double total = 0;
      for (int k = 1; k <= most; ++k) total += schedule.share(k, step, kSteps);
      require(std::fabs(total - 1) < 1e-4, "the shares of a step's passes add up to 1");
      int drawn = schedule.draw(1, step, kSteps);
      require(drawn >= 1 && drawn <= most && schedule.share(drawn, step, kSteps) > 0, "what is drawn can be");
    }
  });
}
