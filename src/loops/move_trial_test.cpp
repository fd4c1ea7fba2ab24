// SPDX-License-Identifier: Apache-2.0
#include "loops/move_trial.hpp"

#include <gtest/gtest.h>

#include <random>

namespace amasia::loops {
namespace {

using Verdict = MoveTrial::Verdict;
constexpr double kMs = base::kMillisecond;

// Of the only region there is.
Verdict note(MoveTrial& trial, double elapsed) { return trial.note(elapsed, elapsed); }

// The first verdict of executions that take about so long; kOpen: there was none.
Verdict verdict_of(MoveTrial& trial, double elapsed, int most = 20) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<> factor(0.95, 1.05);
  for (int run = 0; run < most; ++run) {
    const Verdict verdict = note(trial, elapsed * factor(random));
    if (verdict != Verdict::kOpen) return verdict;
  }
  return Verdict::kOpen;
}

void know(MoveTrial& trial, double elapsed) {
  for (int run = 0; run < 20; ++run) ASSERT_EQ(verdict_of(trial, elapsed, 1), Verdict::kNone);
}

TEST(MoveTrial, TellsBetterFromWorse) {
  for (const double factor : {0.5, 0.9, 1.0, 1.2, 3.0}) {
    MoveTrial trial;
    know(trial, 2 * kMs);
    trial.move();
    EXPECT_EQ(verdict_of(trial, factor * 2 * kMs),
              factor > 1 ? Verdict::kWorse : Verdict::kBetter) << factor;
    EXPECT_EQ(trial.is_wary(), factor > 1);
    EXPECT_EQ(trial.step(), factor > 1 ? 0.5 : 1);
  }
}

// The region gains, others fetch what it has taken.
TEST(MoveTrial, WhatAllRegionsTakeCounts) {
  for (const bool harms : {false, true}) {
    MoveTrial trial;
    for (int run = 0; run < 20; ++run) trial.note(2 * kMs, 10 * kMs);
    trial.move();
    Verdict verdict = Verdict::kOpen;
    for (int run = 0; run < 8 && verdict == Verdict::kOpen; ++run) {
      verdict = trial.note(1.5 * kMs, harms ? 14 * kMs : 9.5 * kMs);
    }
    EXPECT_EQ(verdict, harms ? Verdict::kWorse : Verdict::kBetter);
  }
}

TEST(MoveTrial, ByTwoExecutionsWhereTheyAreLong) {
  MoveTrial trial;
  know(trial, 100 * kMs);
  trial.move();
  EXPECT_EQ(verdict_of(trial, 130 * kMs, 1), Verdict::kOpen);
  EXPECT_EQ(verdict_of(trial, 130 * kMs, 1), Verdict::kWorse);
}

TEST(MoveTrial, NotWhereLittleIsKnownOfWhatWas) {
  MoveTrial trial;
  EXPECT_EQ(note(trial, 2 * kMs), Verdict::kNone);
  trial.move();
  EXPECT_EQ(verdict_of(trial, 9 * kMs), Verdict::kNone);
}

TEST(MoveTrial, AnExecutionThatIsDisturbedDoesNotDecide) {
  MoveTrial trial;
  know(trial, 2 * kMs);
  trial.move();
  EXPECT_EQ(note(trial, 30 * kMs), Verdict::kOpen);
  EXPECT_EQ(verdict_of(trial, 1.9 * kMs), Verdict::kBetter);
}

TEST(MoveTrial, StepsGetShorterAndLongerAgain) {
  MoveTrial trial;
  know(trial, 2 * kMs);
  for (int move = 0; move < 9; ++move) {
    trial.move();
    ASSERT_EQ(verdict_of(trial, 3 * kMs), Verdict::kWorse);
  }
  EXPECT_EQ(trial.step(), 0.125);
  for (int move = 0; move < 3; ++move) {
    trial.move();
    ASSERT_EQ(verdict_of(trial, 2 * kMs), Verdict::kBetter);
  }
  EXPECT_EQ(trial.step(), 1);
}

TEST(MoveTrial, IsWaryNoMoreWhenTimesChange) {
  MoveTrial trial;
  know(trial, 2 * kMs);
  trial.move();
  ASSERT_EQ(verdict_of(trial, 3 * kMs), Verdict::kWorse);
  know(trial, 2 * kMs);
  EXPECT_TRUE(trial.is_wary());
  for (int run = 0; run < 4; ++run) note(trial, 5 * kMs);
  EXPECT_FALSE(trial.is_wary());
  // What is held against the next move is what executions take now.
  for (int run = 0; run < 8; ++run) note(trial, 5 * kMs);
  trial.move();
  EXPECT_EQ(verdict_of(trial, 4 * kMs), Verdict::kBetter);
}

}  // namespace
}  // namespace amasia::loops
