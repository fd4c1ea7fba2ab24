// SPDX-License-Identifier: Apache-2.0
#include "tasks/patience.hpp"

#include <gtest/gtest.h>

namespace amasia::tasks {
namespace {

TEST(Patience, GrowsWhereWakingComesSoonAndFindsNothing) {
  Patience patience;
  EXPECT_EQ(patience.search_ns(), Patience::kSearchNs);
  patience.slept(0);
  EXPECT_EQ(patience.search_ns(), 2 * Patience::kSearchNs);
  patience.slept(Patience::kBriefSleepNs - 1);
  EXPECT_EQ(patience.search_ns(), 4 * Patience::kSearchNs);
  for (int n = 0; n < 100; ++n) patience.slept(0);
  EXPECT_EQ(patience.search_ns(), Patience::kMostNs);
}

TEST(Patience, IsForgottenWithALongSleep) {
  Patience patience;
  for (int n = 0; n < 100; ++n) patience.slept(0);
  patience.slept(Patience::kBriefSleepNs);
  EXPECT_EQ(patience.search_ns(), Patience::kSearchNs);
}

}  // namespace
}  // namespace amasia::tasks
