// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/yield_pause.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

constexpr Nanos kYield = base::kMicrosecond, kLong = 3 * base::kMillisecond;
constexpr Nanos kAsleep = 10 * base::kMicrosecond;

// A thread that waits for `time`, and yields while it may; each `period` something else wants the
// core once. How much of the time it did not yield, or had yielded to that.
double lost(Nanos time, Nanos period) {
  YieldPause pause;
  Nanos now = base::kSecond, next = now, without = 0;
  for (const Nanos end = now + time; now < end;) {
    const Nanos before = now;
    if (pause.may_yield(now)) {
      const bool is_taken = now >= next;
      if (is_taken) next += period;
      now += is_taken ? kLong : kYield;
      without += is_taken ? kLong : 0;
      pause.note(before, now);
    } else {
      now += kAsleep;
      without += kAsleep;
    }
  }
  return static_cast<double>(without) / static_cast<double>(time);
}

TEST(YieldPause, AnExceptionCostsLittleMoreThanItself) {
  const double one_in_100_ms = lost(10 * base::kSecond, 100 * base::kMillisecond);
  EXPECT_NEAR(one_in_100_ms, 0.04, 0.005);
}

// Yielding to what always runs there costs a slice each time.
TEST(YieldPause, WhatAlwaysRunsGetsFewYields) {
  YieldPause pause;
  Nanos now = base::kSecond;
  int yields = 0;
  for (const Nanos end = now + base::kSecond; now < end; ++yields) {
    while (!pause.may_yield(now)) now += kAsleep;
    pause.note(now, now + kLong);
    now += kLong;
  }
  EXPECT_LT(yields, 18);
  EXPECT_GT(yields, 12) << "it is asked now and then";
}

TEST(YieldPause, IsBriefAgainOnceYieldsWereShort) {
  YieldPause pause;
  Nanos now = base::kSecond;
  const auto pause_after_long = [&] {
    pause.note(now, now + kLong);
    now += kLong;
    const Nanos begin = now;
    while (!pause.may_yield(now)) now += base::kMicrosecond;
    return now - begin;
  };
  Nanos length = 0;
  for (int i = 0; i < 10; ++i) length = pause_after_long();
  EXPECT_EQ(length, YieldPause::kLongest);
  now += 2 * YieldPause::kLongest;  // of short ones
  EXPECT_EQ(pause_after_long(), YieldPause::kShortest);
}

}  // namespace
}  // namespace amasia::omp
