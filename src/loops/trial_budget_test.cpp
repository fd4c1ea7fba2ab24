// SPDX-License-Identifier: Apache-2.0
#include "loops/trial_budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace amasia::loops {
namespace {

constexpr Nanos kMs = base::kMillisecond, kSecond = base::kSecond;

TEST(TrialBudget, AShortProgramMayFindOut) {
  TrialBudget budget;
  for (int region = 0; region < 10; ++region) budget.note(true, 30 * kMs, 10.0 * kMs);
  EXPECT_GT(budget.left(kSecond / 2), 0);
}

TEST(TrialBudget, IsATenthOfTheTimeAndALittle) {
  TrialBudget budget;
  budget.note(true, 3 * kSecond, 1.0 * kSecond);
  EXPECT_LT(budget.left(10 * kSecond), 0);
  EXPECT_GT(budget.left(20 * kSecond), 0);
}

// However many regions a program begins, each dearer than the one before, and none pays.
TEST(TrialBudget, BoundsWhatAProgramLoses) {
  TrialBudget budget;
  Nanos now = 0, lost = 0, dearest = 0;
  for (Nanos alone = kMs; now < 100 * kSecond; alone += kMs) {
    const bool tries = budget.left(now) >= 0;
    const Nanos took = tries ? 3 * alone : alone;
    if (tries) budget.note(true, took, static_cast<double>(alone));
    now += took;
    lost += took - alone;
    if (tries) dearest = std::max(dearest, took - alone);
    ASSERT_LE(lost, kSecond / 4 + now / 10 + dearest);
  }
  EXPECT_GT(lost, now / 20) << "that is there to be used";
}

TEST(TrialBudget, WhatSharingGainsPaysBackAndNoMore) {
  TrialBudget budget;
  budget.note(true, 3 * kSecond, 1.0 * kSecond);
  for (int run = 0; run < 5; ++run) budget.note(false, kSecond / 2, 1.0 * kSecond);
  EXPECT_EQ(budget.left(kSecond), TrialBudget().left(kSecond));
  budget.note(false, 2 * kSecond, 1.0 * kSecond);
  EXPECT_EQ(budget.left(kSecond), TrialBudget().left(kSecond)) << "nobody tried anything";
}

// A region that gains half a second, whose data serial code waits for as long, gains nothing.
TEST(TrialBudget, CountsWhatSerialCodeWaitsForAfterwards) {
  TrialBudget budget;
  budget.charge(kSecond);
  EXPECT_LT(budget.left(kSecond), 0);
  budget.note(false, kSecond / 2, 1.0 * kSecond);
  budget.charge(kSecond / 2);
  EXPECT_LT(budget.left(kSecond), 0);
  budget.note(false, kSecond / 2, 2.0 * kSecond);
  EXPECT_EQ(budget.left(kSecond), TrialBudget().left(kSecond));
}

TEST(TrialBudget, KnowsNoLossWhereNothingIsKnownOfTheTimeAlone) {
  TrialBudget budget;
  budget.note(true, 3 * kSecond, 0);
  EXPECT_EQ(budget.left(kSecond), TrialBudget().left(kSecond));
}

}  // namespace
}  // namespace amasia::loops
