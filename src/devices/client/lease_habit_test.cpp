// SPDX-License-Identifier: Apache-2.0
#include "devices/client/lease_habit.hpp"

#include <gtest/gtest.h>

namespace amasia::devices {
namespace {

constexpr Nanos kMicrosecond = base::kMicrosecond;

// How many of `tasks` begin at once, where each way takes so long; one of seven takes far longer.
std::size_t at_once(LeaseHabit& habit, std::size_t tasks, Nanos so, Nanos by_daemon) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < tasks; ++i) {
    const bool begins = habit.begins_at_once();
    count += begins ? 1 : 0;
    habit.note(begins, (begins ? so : by_daemon) * (i % 7 == 3 ? 40 : 1));
  }
  return count;
}

constexpr std::size_t kRound = (2 + LeaseHabit::kKept) * LeaseHabit::kTried;

TEST(LeaseHabit, TakesTheQuickerWay) {
  LeaseHabit habit;
  EXPECT_TRUE(habit.begins_at_once());
  EXPECT_EQ(at_once(habit, kRound, 15 * kMicrosecond, 20 * kMicrosecond),
            kRound - LeaseHabit::kTried);
  LeaseHabit other;
  EXPECT_EQ(at_once(other, kRound, 25 * kMicrosecond, 20 * kMicrosecond), LeaseHabit::kTried);
}

TEST(LeaseHabit, LooksAgain) {
  LeaseHabit habit;
  at_once(habit, kRound, 25 * kMicrosecond, 20 * kMicrosecond);
  EXPECT_FALSE(habit.begins_at_once());
  // The machine has become another one: known after the next try.
  at_once(habit, 2 * LeaseHabit::kTried, 15 * kMicrosecond, 20 * kMicrosecond);
  EXPECT_EQ(at_once(habit, 1000, 15 * kMicrosecond, 20 * kMicrosecond), 1000U);
}

TEST(LeaseHabit, WhatWasBegunBeforeTheWayChangedDoesNotCount) {
  LeaseHabit habit;
  for (std::size_t i = 0; i < LeaseHabit::kTried; ++i) habit.note(true, 10);
  EXPECT_FALSE(habit.begins_at_once());
  for (std::size_t i = 0; i < 5 * LeaseHabit::kTried; ++i) habit.note(true, 1000);
  EXPECT_FALSE(habit.begins_at_once());
  for (std::size_t i = 0; i < LeaseHabit::kTried; ++i) habit.note(false, 20);
  EXPECT_TRUE(habit.begins_at_once());
}

}  // namespace
}  // namespace amasia::devices
