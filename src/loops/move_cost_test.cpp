// SPDX-License-Identifier: Apache-2.0
#include "loops/move_cost.hpp"

#include <gtest/gtest.h>

namespace amasia::loops {
namespace {

constexpr double kMs = base::kMillisecond;

// A move of a tenth of the work after which executions of 3 ms take 5, 8 and 4 ms.
void move_a_tenth(MoveCost& cost) {
  cost.move(0.1, 3 * kMs);
  for (const double elapsed : {5 * kMs, 8 * kMs, 4 * kMs}) cost.note(elapsed, true);
}

TEST(MoveCost, IsWhatWasLostUntilDataHadFollowed) {
  MoveCost cost;
  EXPECT_EQ(cost.expected(0.1), 0) << "nothing has been moved";
  move_a_tenth(cost);
  EXPECT_EQ(cost.expected(0.1), 0) << "data still follow";
  cost.note(3 * kMs, false);
  EXPECT_EQ(cost.expected(0.1), 8 * kMs);
  cost.note(30 * kMs, true);
  EXPECT_EQ(cost.expected(0.1), 8 * kMs) << "no move is followed any more";
}

TEST(MoveCost, IsAtLeastHalfForLessAndTwiceForMore) {
  MoveCost cost;
  move_a_tenth(cost);
  cost.note(3 * kMs, false);
  EXPECT_DOUBLE_EQ(cost.expected(0.08), 6.4 * kMs);
  EXPECT_EQ(cost.expected(0.001), 4 * kMs);
  EXPECT_EQ(cost.expected(0.9), 16 * kMs);
}

TEST(MoveCost, OfTheLastMoveThatWasSeenToItsEnd) {
  MoveCost cost;
  move_a_tenth(cost);
  cost.note(3 * kMs, false);
  move_a_tenth(cost);
  cost.forget();
  cost.note(3 * kMs, false);
  EXPECT_EQ(cost.expected(0.1), 8 * kMs);
  cost.move(0.1, 3 * kMs);
  cost.note(4 * kMs, true);
  cost.note(2 * kMs, true);
  cost.note(3 * kMs, false);
  EXPECT_EQ(cost.expected(0.1), 1 * kMs) << "what took less than usual makes up for nothing";
}

}  // namespace
}  // namespace amasia::loops
