// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <gtest/gtest.h>

#include "os/os.hpp"

namespace amasia::os {
namespace {

TEST(Clock, AThreadsCpuTimeIsItsOwn) {
  const Nanos before = thread_cpu_time(current_thread_id());
  const Nanos own = own_cpu_time();
  const Nanos after = thread_cpu_time(current_thread_id());
  EXPECT_LE(before, own);
  EXPECT_LE(own, after);
}

TEST(Clock, WhatIsNoThreadHasNoCpuTime) {
  for (const int none : {0, -1, -2, -100}) EXPECT_EQ(thread_cpu_time(none), -1) << none;
}

TEST(Clock, StampsTellWhenTheyWereTaken) {
  const TickClock clock;
  const Nanos before = monotonic_now();
  const Ticks stamp = ticks_now();
  const Nanos after = monotonic_now();
  while (monotonic_now() < after + 20 * base::kMillisecond) {
  }
  const Nanos told = clock.time_of(stamp);
  EXPECT_GT(told, before - 5 * base::kMillisecond);
  EXPECT_LT(told, after + 5 * base::kMillisecond);
  const Nanos not_taken_yet = clock.time_of(ticks_now() + 1'000'000'000);
  EXPECT_LE(not_taken_yet, monotonic_now());
}

}  // namespace
}  // namespace amasia::os
