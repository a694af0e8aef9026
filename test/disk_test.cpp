// The disk of a run's checkpoints: how many lie there at once, and what a run that does not fit says.
#include "disk.h"

#include <set>

#include "program.h"
#include "random.h"

namespace {

// The most new checkpoints that lie there while a run goes on, by going through it.
int64_t counted(int64_t step, int64_t steps, int64_t save_every, Keep keep, int64_t present) {
  std::set<int64_t> there;
  for (int64_t i = 0; i < present; ++i) there.insert(-1 - i);  // the oldest
  int64_t most = 0;
  for (int64_t at = step + 1; at <= steps; ++at) {
    bool saves = at == steps || (save_every > 0 && at % save_every == 0) || keep.for_good(at);
    if (!saves) continue;
    there.insert(at);
    most = std::max(most, int64_t(there.size()) - present);
    std::vector<int64_t> passing;
    for (int64_t one : there)
      if (one < 0 || !keep.for_good(one)) passing.push_back(one);
    for (size_t i = 0; keep.newest > 0 && i + size_t(keep.newest) < passing.size(); ++i) there.erase(passing[i]);
  }
  return most;
}

TEST(Disk, HoldsAtMostTheCheckpointsThatArePlannedAndAtLeastAllButOne) {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    int64_t steps = 2 + random.below(60), step = random.below(int(steps)), present = random.below(3);
    int64_t save_every = random.below(12);
    Keep keep{random.below(4), random.below(20)};
    if (keep.newest > 0) present = std::min<int64_t>(present, keep.newest);
    int64_t planned = plan_disk(1, step, steps, save_every, keep, present).checkpoints;
    int64_t most = counted(step, steps, save_every, keep, present);
    EXPECT_TRUE(most <= planned && planned <= most + 1)
        << planned << " planned, " << most << " there: steps " << step << " to " << steps << ", saved every "
        << save_every << ", kept " << keep.newest << " and every " << keep.every << ", present " << present;
  }
}

TEST(Disk, OfAPathThatIsNotThereYetIsThatOfTheFolderWhereItWillBe) {
  Scratch scratch;
  EXPECT_GT(free_disk(scratch / "a/b/c"), 0);
  EXPECT_GT(free_disk("not/there"), 0);
}

TEST(Disk, ThatIsTooSmallEndsARunBeforeItWritesWithWhatToChange) {
  std::string said = message_of([] { require_disk({1e18, 3}, "/tmp/x"); });
  EXPECT_TRUE(has(said, "the checkpoints take ") && has(said, " (3 of ") && has(said, " are free where /tmp/x is: "))
      << said;
  EXPECT_EQ(message_of([] { require_disk({1, 3}, "/tmp/x"); }), "");
  Bench bench;
  // More checkpoints than any disk holds.
  expect_refused(
      run("train", bench.sizes() + Words{"--out", bench / "out", "--steps", "1000000000000", "--save-every", "1", "--keep", "0"}),
      "train", "save fewer with --keep, --keep-every and --save-every");
  EXPECT_FALSE(folder_exists(bench / "out"));
}

}  // namespace
