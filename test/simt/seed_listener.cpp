// Every test begins with the emulator's seed, so that it runs alone as it does in company; one that fails says how to
// repeat it.
#include <gtest/gtest.h>

#include "simt.h"

namespace {

class SeedListener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { simt::set_seed(first_); }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Failed())
      std::printf("The emulator's seed was %llu: FULLBAND_SIMT_SEED=%llu\n",
                  static_cast<unsigned long long>(simt::seed()), static_cast<unsigned long long>(first_));
  }
  uint64_t first_ = simt::seed();
};

const bool listening = (testing::UnitTest::GetInstance()->listeners().Append(new SeedListener), true);

}  // namespace
