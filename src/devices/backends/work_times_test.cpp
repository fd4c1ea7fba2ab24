// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/work_times.hpp"

#include <gtest/gtest.h>

namespace amasia::devices {
namespace {

TEST(KernelTime, SomeLaunchesAreMeasured) {
  KernelTime time;
  EXPECT_LT(time.expected(100), 0);
  int measured = 0;
  for (int launch = 0; launch < 164; ++launch) {
    if (!time.is_due()) continue;
    ++measured;
    time.learn(10, 1000);
  }
  EXPECT_EQ(measured, 4 + 10);
  EXPECT_EQ(time.expected(5), 500);
}

TEST(KernelTime, AreUntilOneHasEnded) {
  KernelTime time;
  for (int launch = 0; launch < 50; ++launch) EXPECT_TRUE(time.is_due()) << launch;
}

SeenTimes seen() {
  return {.sent = 100, .before_ended = 0, .ended = 1000, .has_kernel = true, .copied_in = true,
          .copied_out = true};
}

TEST(EstimatedTimes, TheKernelRunsJustBeforeTheEnd) {
  const Outcome times = estimate_times(seen(), 200);
  EXPECT_EQ(times.copy_began, 100);
  EXPECT_EQ(times.run_began, 800);
  EXPECT_EQ(times.run_ended, 1000);
  EXPECT_EQ(times.copy_ended, 1000);
}

TEST(EstimatedTimes, NothingBeginsBeforeWhatStoodBeforeItHasEnded) {
  SeenTimes late = seen();
  late.before_ended = 900;
  const Outcome times = estimate_times(late, 200);
  EXPECT_EQ(times.copy_began, 900);
  EXPECT_EQ(times.run_began, 900) << "it was shorter this time";
  late.before_ended = 1100;  // noticed later than its successor's end
  EXPECT_EQ(estimate_times(late, 200).run_began, 1000);
}

TEST(EstimatedTimes, OfARowTheyEndOneAfterTheOther) {
  Nanos interval = 0;
  const SeenTimes brief = {.sent = 100, .before_ended = 0, .ended = 1000, .has_kernel = true};
  const Outcome first = estimate_row(brief, 50, 4, &interval);
  EXPECT_EQ(interval, 50);
  EXPECT_EQ(first.run_began, 800);
  EXPECT_EQ(first.run_ended, 850);
  const Outcome one = estimate_row(brief, 200, 1, &interval);
  EXPECT_EQ(one.run_began, estimate_times(brief, 200).run_began);
  EXPECT_EQ(one.run_ended, 1000);
}

TEST(EstimatedTimes, WhatIsNotThereHasNone) {
  const Outcome copies = estimate_times({.sent = 5, .ended = 9, .copied_in = true}, -1);
  EXPECT_EQ(copies.copy_began, 5);
  EXPECT_EQ(copies.run_began, 0);
  EXPECT_EQ(copies.run_ended, 0);
  EXPECT_EQ(copies.copy_ended, 0);
  const Outcome unknown = estimate_times({.sent = 5, .ended = 9, .has_kernel = true}, -1);
  EXPECT_EQ(unknown.run_began, 5) << "all the time, where nothing is known";
  EXPECT_EQ(unknown.copy_began, 0);
}

}  // namespace
}  // namespace amasia::devices
