// SPDX-License-Identifier: Apache-2.0
#include "omp/locks/lock_habit.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

constexpr Nanos kFetch = 30 * base::kMicrosecond;
constexpr Nanos kSoon = 5 * base::kMicrosecond;
constexpr Nanos kLate = 10 * kFetch;

// One thread of a node, which takes the lock again and again.
struct Thread {
  LockHabit habit;
  Nanos now = base::kSecond;
  Nanos paused = 0;

  void take(Nanos after, bool lingers = false) {
    now += after;
    habit.note_acquire(now, kFetch, lingers);
    habit.note_release(now);
  }
  void take_often(int times, Nanos after, bool lingers = false) {
    for (int i = 0; i < times; ++i) take(after, lingers);
  }
  bool expected() const { return expected_at(now); }
  bool expected_at(Nanos when) const { return habit.expects_thread(when, kFetch, paused); }
  void nudge_after(Nanos after) {
    now += after;
    habit.note_nudge(now, kFetch);
  }
  // How many timely returns it takes until it is expected.
  int returns_until_expected() {
    int returns = 0;
    for (; !expected() && returns < 10000; ++returns) take(kSoon);
    return returns;
  }
};

TEST(LockHabit, ExpectsWhoCameBackSoonSeveralTimes) {
  Thread thread;
  thread.take(0);  // the first says nothing
  EXPECT_FALSE(thread.habit.knows());
  thread.take(kSoon);
  EXPECT_FALSE(thread.expected());
  thread.take(kSoon);
  EXPECT_TRUE(thread.expected());
  EXPECT_TRUE(thread.habit.knows());
  // For so long and no longer.
  EXPECT_TRUE(thread.expected_at(thread.now + 2 * kFetch - 1));
  EXPECT_FALSE(thread.expected_at(thread.now + 2 * kFetch));
}

TEST(LockHabit, ExpectsNobodyWhoComesLate) {
  Thread thread;
  thread.take_often(100, kLate);
  EXPECT_FALSE(thread.expected());
}

TEST(LockHabit, NothingIsKnownBeforeATokenWasFetched) {
  LockHabit habit;
  for (int i = 0; i < 100; ++i) {
    habit.note_acquire(i, 0, false);
    habit.note_release(i);
  }
  EXPECT_FALSE(habit.expects_thread(100, 0, -1));
  EXPECT_FALSE(habit.knows());
}

TEST(LockHabit, OneLateReturnAmongManyChangesNothing) {
  Thread thread;
  thread.take_often(20, kSoon);
  thread.take(kLate);
  EXPECT_TRUE(thread.expected());
  thread.take_often(4, kLate);
  EXPECT_FALSE(thread.expected());
}

TEST(LockHabit, WhatLingeredInVainIsTriedMoreRarely) {
  Thread thread;
  int before = 0;
  for (int time = 0; time < 8; ++time) {
    thread.take(0);
    const int returns = thread.returns_until_expected();
    EXPECT_GE(returns, std::min(3 * before / 2, 256)) << time;
    before = returns;
    thread.nudge_after(kLate);
    EXPECT_FALSE(thread.expected());
  }
  // Never for good: loops change.
  EXPECT_LT(before, 1000);
}

TEST(LockHabit, TheEndOfALoopIsForgiven) {
  Thread thread;
  for (int loop = 0; loop < 10; ++loop) {
    EXPECT_LE(thread.returns_until_expected(), 4);
    thread.take_often(100, kSoon, true);
    thread.nudge_after(kLate);
  }
}

TEST(LockHabit, ExpectsNobodyWhoWaitsForOtherNodes) {
  Thread thread;
  thread.take_often(10, kSoon);
  thread.paused = thread.now + 1;
  EXPECT_FALSE(thread.expected_at(thread.now + 2));
  thread.take(kSoon);
  EXPECT_TRUE(thread.expected());
}

TEST(LockHabit, ANudgeInABusyTurnSaysNothing) {
  Thread thread;
  thread.take_often(10, kSoon);
  thread.nudge_after(kSoon);
  EXPECT_TRUE(thread.expected());
}

}  // namespace
}  // namespace amasia::omp
