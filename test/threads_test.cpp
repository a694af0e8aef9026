// The threads that the kernels share: every task is run exactly once, whatever the number of threads, how often it
// changes, and whether the workers are awake.
#define ISA threads_under_test
#include "parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "kernels.h"
#include "workspace.h"

namespace {

using namespace threads_under_test;

struct Threads : testing::Test {
  ~Threads() override { set_threads(0); }
};

// One loop over `count` tasks; says whether each was run once. Counts are plain: two threads at one task would be seen.
template <class Loop>
bool each_once(Loop loop, int64_t count) {
  std::vector<int> times(count);
  loop(count, true, [&](int64_t i) { ++times[i]; });
  for (int n : times)
    if (n != 1) return false;
  return true;
}

constexpr auto kRanges = [](int64_t count, bool worthwhile, auto f) { parallel_for(count, worthwhile, f); };
constexpr auto kTasks = [](int64_t count, bool worthwhile, auto f) { parallel_tasks(count, worthwhile, f); };

TEST_F(Threads, RunEachTaskOnce) {
  for (int threads : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(set_threads(threads), threads);
    EXPECT_EQ(thread_count(), threads);
    for (int round = 0; round < 300; ++round)
      for (int64_t count : {0, 1, 2, 7, 33}) {
        ASSERT_TRUE(each_once(kRanges, count)) << threads << " threads, round " << round << ", " << count << " tasks";
        ASSERT_TRUE(each_once(kTasks, count)) << threads << " threads, round " << round << ", " << count << " tasks";
      }
  }
}

TEST_F(Threads, RunEachTaskOnceWhileTheirNumberChanges) {
  for (int round = 0; round < 300; ++round) {
    int threads = 1 + (round * 7) % 5;
    set_threads(threads);
    ASSERT_TRUE(each_once(kRanges, 13)) << "round " << round;
    ASSERT_TRUE(each_once(kTasks, 13)) << "round " << round;
  }
}

TEST_F(Threads, WakeFromSleep) {
  for (int threads : {2, 3, 5}) {
    set_threads(threads);
    for (int round = 0; round < 150; ++round) {
      std::this_thread::sleep_for(std::chrono::microseconds(round % 2 ? 200 : 20));  // they spin for 30
      ASSERT_TRUE(each_once(kRanges, 9)) << "round " << round;
    }
  }
}

// Some tasks take long enough that the others, and the caller, fall asleep waiting.
TEST_F(Threads, WaitForTheSlowest) {
  set_threads(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<int> done(6);
    parallel_for(6, true, [&](int64_t i) {
      if (i == round % 6) std::this_thread::sleep_for(std::chrono::microseconds(300));
      done[i] = 1;
    });
    ASSERT_EQ(done, std::vector<int>(6, 1));
  }
}

TEST_F(Threads, MayBeMoreThanThereAreCores) {
  int cores = int(std::max(1u, std::thread::hardware_concurrency()));
  set_threads(4 * cores + 3);
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(each_once(kRanges, 50)) << "round " << round;
    ASSERT_TRUE(each_once(kTasks, 50)) << "round " << round;
  }
}

TEST_F(Threads, ZeroAsksForAllCores) {
  int all = set_threads(0);
  EXPECT_EQ(all, int(std::max(1u, std::thread::hardware_concurrency())));
  EXPECT_EQ(thread_count(), all);
  EXPECT_EQ(set_threads(-3), all);
}

TEST_F(Threads, EachRunsOnceAndTheCallerIsTheFirst) {
  for (int threads : {1, 2, 4}) {
    set_threads(threads);
    for (int round = 0; round < 50; ++round) {
      std::mutex mutex;
      std::set<int> seen;
      std::set<std::thread::id> ids;
      bool first_is_caller = false;
      std::thread::id caller = std::this_thread::get_id();
      parallel(true, [&](int thread, int of) {
        std::lock_guard<std::mutex> lock(mutex);
        EXPECT_EQ(of, threads);
        EXPECT_TRUE(seen.insert(thread).second);
        ids.insert(std::this_thread::get_id());
        if (thread == 0) first_is_caller = std::this_thread::get_id() == caller;
      });
      ASSERT_EQ(int(seen.size()), threads);
      ASSERT_EQ(int(ids.size()), threads);
      ASSERT_EQ(*seen.begin(), 0);
      ASSERT_EQ(*seen.rbegin(), threads - 1);
      ASSERT_TRUE(first_is_caller);
    }
  }
}

TEST_F(Threads, WorkThatIsNotWorthWakingThemStaysWithTheCaller) {
  set_threads(4);
  std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 100; ++round)
    parallel_for(20, false, [&](int64_t) { ASSERT_EQ(std::this_thread::get_id(), caller); });
  EXPECT_FALSE(worth_threads(1));
  EXPECT_TRUE(worth_threads(1 << 20));
}

TEST_F(Threads, ARangeGoesToTheSameThreadEveryTime) {
  set_threads(3);
  auto owners = [] {
    std::vector<std::thread::id> of(17);
    parallel_for(17, true, [&](int64_t i) { of[i] = std::this_thread::get_id(); });
    return of;
  };
  std::vector<std::thread::id> first = owners();
  for (size_t i = 2; i < first.size(); ++i)
    EXPECT_TRUE(first[i] == first[i - 1] || first[i] != first[i - 2]) << "neighbours stay together";
  for (int round = 0; round < 100; ++round) ASSERT_EQ(owners(), first);
}

TEST_F(Threads, ResultsOfOneRoundAreSeenInTheNext) {
  set_threads(3);
  std::vector<int64_t> values(999, 1), next(999);
  for (int round = 0; round < 400; ++round) {
    // Every task reads what another thread wrote in the round before.
    parallel_for(999, true, [&](int64_t i) { next[i] = values[(i + 500) % 999] + 1; });
    values.swap(next);
  }
  for (int64_t value : values) ASSERT_EQ(value, 401);
}

TEST_F(Threads, HaveScratchMemoryOfTheirOwn) {
  set_threads(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<float*> places(3);
    std::atomic<int> waiting = 3;
    parallel(true, [&](int thread, int) {
      size_t floats = size_t(10 + 100 * round);
      float* scratch = thread_workspace(1, floats);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % 64, 0u);
      EXPECT_NE(scratch, thread_workspace(2, floats));
      for (size_t i = 0; i < floats; ++i) scratch[i] = float(thread);
      places[thread] = scratch;
      for (--waiting; waiting > 0;) std::this_thread::yield();  // all have written
      for (size_t i = 0; i < floats; ++i) ASSERT_EQ(scratch[i], float(thread));
      EXPECT_EQ(thread_workspace(1, 5), scratch) << "it stays";
    });
    EXPECT_NE(places[0], places[1]);
    EXPECT_NE(places[1], places[2]);
  }
}

}  // namespace
