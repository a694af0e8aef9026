// Spikes: what is far outside of the last steps, and nothing else.
#include "spikes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "error.h"

namespace {

// Loss and norm of a quiet run.
double quiet(int step) { return 3 + 0.1 * std::sin(step * 1.7); }

SpikeWatch after_steps(int steps, int passes = 1) {
  SpikeWatch watch;
  for (int i = 0; i < steps; ++i) EXPECT_FALSE(watch.is_spike(passes, quiet(i), quiet(i), 6));
  return watch;
}

}  // namespace

TEST(RecentValues, ZCountsStandardDeviationsAboveTheMeanOfAFullWindow) {
  RecentValues values;
  for (int i = 0; i < int(RecentValues::kWindow); ++i) {
    EXPECT_EQ(values.z(1000), 0) << "the window is not full";
    values.add(i % 2 == 0 ? 1 : 3);  // mean 2, deviation 1
  }
  EXPECT_DOUBLE_EQ(values.z(2), 0);
  EXPECT_DOUBLE_EQ(values.z(7), 5);
  EXPECT_DOUBLE_EQ(values.z(-7), -9);
  for (int i = 0; i < int(RecentValues::kWindow); ++i) values.add(5);
  EXPECT_EQ(values.z(1000), 0) << "nothing varies: nothing is said";
}

TEST(SpikeWatch, AJumpOfTheLossOrOfTheGradientIsASpike) {
  SpikeWatch watch = after_steps(200);
  EXPECT_FALSE(watch.is_spike(1, 3.2, 3.2, 6));
  EXPECT_FALSE(watch.is_spike(1, 0.1, 0.1, 6)) << "falling is no spike";
  watch = after_steps(200);
  EXPECT_TRUE(watch.is_spike(1, 9, 3, 6));
  watch = after_steps(200);
  EXPECT_TRUE(watch.is_spike(1, 3, 9, 6));
}

TEST(SpikeWatch, WhatLastsIsNoSpike) {
  SpikeWatch watch = after_steps(200);
  int spikes = 0;
  for (int i = 0; i < 200; ++i) spikes += watch.is_spike(1, 9 + quiet(i), 9 + quiet(i), 6);
  EXPECT_TRUE(spikes > 0 && spikes < 20) << spikes;
  EXPECT_TRUE(watch.is_spike(1, 15, 9, 6));
}

TEST(SpikeWatch, StepsOfMorePassesAreComparedWithTheirOwnKind) {
  SpikeWatch watch = after_steps(200);
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(watch.is_spike(2, 9 + quiet(i), 9 + quiet(i), 6));
  EXPECT_TRUE(watch.is_spike(1, 12, 3, 6));
  EXPECT_FALSE(watch.is_spike(2, 12, 12, 6));
}

TEST(SpikeWatch, GoesOnFromItsRecordAsIfNothingHadBeen) {
  for (int steps : {3, 128, 200, 301}) {
    SpikeWatch watch = after_steps(steps, 2), again;
    again.load(parse_json(write_json(watch.record()), "state"), "state");
    EXPECT_EQ(write_json(again.record()), write_json(watch.record()));
    for (int i = 0; i < 300; ++i) {
      double loss = quiet(i) + (i % 37 == 0 ? 0.3 : 0);
      EXPECT_EQ(watch.is_spike(2, loss, 3, 3), again.is_spike(2, loss, 3, 3));
    }
    EXPECT_EQ(write_json(again.record()), write_json(watch.record()));
  }
  SpikeWatch watch;
  EXPECT_THROW(watch.load(parse_json("[{\"loss\": [\"x\"], \"grad_norm\": []}]", "s"), "s"), Error);
  EXPECT_THROW(watch.load(parse_json("[{\"loss\": []}]", "s"), "s"), Error);
}
