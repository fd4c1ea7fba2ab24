// SPDX-License-Identifier: Apache-2.0
#include "tasks/left_alone.hpp"

#include <gtest/gtest.h>

#include "tasks/deque.hpp"

namespace amasia::tasks {
namespace {

TEST(LeftAlone, LeavesATaskForAMomentAndNoLonger) {
  LeftAlone left;
  EXPECT_TRUE(left.leaves(7, false, 100));
  EXPECT_TRUE(left.leaves(7, false, 100 + LeftAlone::kMomentNs - 1));
  EXPECT_FALSE(left.leaves(7, false, 100 + LeftAlone::kMomentNs));
  EXPECT_FALSE(left.leaves(7, false, 100 + 50 * LeftAlone::kMomentNs));
}

TEST(LeftAlone, LeavesWhatIsOfferedForLess) {
  LeftAlone left;
  EXPECT_TRUE(left.leaves(7, true, 100));
  EXPECT_TRUE(left.leaves(7, true, 100 + LeftAlone::kOfferedNs - 1));
  EXPECT_FALSE(left.leaves(7, true, 100 + LeftAlone::kOfferedNs));
  EXPECT_TRUE(left.leaves(8, false, 2 * LeftAlone::kMomentNs));
}

TEST(LeftAlone, DequesKnowWhatWasOffered) {
  Deque<int> deque(4);
  int value = 0;
  deque.push(&value);
  EXPECT_FALSE(deque.offers(deque.lone()));
  deque.push(&value, true);
  ASSERT_NE(deque.steal(), nullptr);
  EXPECT_TRUE(deque.offers(deque.lone()));
  ASSERT_NE(deque.pop(), nullptr);
  EXPECT_FALSE(deque.offers(deque.lone())) << "there is none";
}

TEST(LeftAlone, CountsAnewForEachTask) {
  LeftAlone left;
  for (std::int64_t task = 0; task < 5; ++task) {
    EXPECT_TRUE(left.leaves(task, false, (task + 1) * LeftAlone::kMomentNs));
  }
}

// By the time of the theft there may be one, which its maker is about to take.
TEST(LeftAlone, TakesNothingWhereThereWasNothing) {
  LeftAlone left;
  EXPECT_TRUE(left.leaves(kNothing, false, 0));
  EXPECT_TRUE(left.leaves(kNothing, true, 50 * LeftAlone::kMomentNs));
}

TEST(LeftAlone, LeavesNothingWhereThereAreSeveral) {
  LeftAlone left;
  EXPECT_TRUE(left.leaves(3, false, 10));
  EXPECT_FALSE(left.leaves(kSeveral, false, 20));
  // It was there all the time, below others.
  EXPECT_FALSE(left.leaves(3, false, 10 + LeftAlone::kMomentNs));
}

// Numbers of a deque's elements never come again: no task is taken for one that was seen before.
TEST(LeftAlone, DequesNumberTheirElements) {
  Deque<int> deque(4);
  int value = 0;
  std::int64_t last = -1;
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(deque.lone(), kNothing);
    deque.push(&value);
    const std::int64_t lone = deque.lone();
    EXPECT_GT(lone, last);
    last = lone;
    deque.push(&value);
    EXPECT_EQ(deque.lone(), kSeveral);
    ASSERT_NE(deque.pop(), nullptr);
    EXPECT_EQ(deque.lone(), lone) << "the older one is the same as before";
    ASSERT_NE(round % 2 == 0 ? deque.pop() : deque.steal(), nullptr);
  }
}

}  // namespace
}  // namespace amasia::tasks
