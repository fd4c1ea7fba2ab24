// SPDX-License-Identifier: Apache-2.0
#include "dsm/stretches.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm {
namespace {

constexpr Nanos kNow = 5 * base::kSecond;

PageIndex page(std::uint64_t value) { return PageIndex{value}; }

TEST(Stretches, WhatWasToldIsKnown) {
  Stretches stretches;
  EXPECT_EQ(stretches.end_of(page(100)), std::nullopt);
  ASSERT_TRUE(stretches.is_to_be_asked(page(100), kNow));
  stretches.note(page(100), {page(90), 30}, kNow + 5);
  EXPECT_EQ(stretches.end_of(page(90)), page(120));
  EXPECT_EQ(stretches.end_of(page(119)), page(120));
  EXPECT_EQ(stretches.end_of(page(89)), std::nullopt);
  EXPECT_EQ(stretches.end_of(page(120)), std::nullopt);
  EXPECT_FALSE(stretches.is_to_be_asked(page(110), kNow + 10));
}

TEST(Stretches, WhatWasToldLongAgoIsAskedAgainAndKnownMeanwhile) {
  Stretches stretches;
  stretches.note(page(100), {page(90), 30}, kNow);
  const Nanos later = kNow + Stretches::kLasts;
  EXPECT_FALSE(stretches.is_to_be_asked(page(100), later - 1));
  EXPECT_TRUE(stretches.is_to_be_asked(page(100), later));
  EXPECT_EQ(stretches.end_of(page(100)), page(120));
}

TEST(Stretches, NobodyIsAskedTwiceAtATime) {
  Stretches stretches;
  ASSERT_TRUE(stretches.is_to_be_asked(page(10'000), kNow));
  EXPECT_FALSE(stretches.is_to_be_asked(page(10'000), kNow + 1));
  EXPECT_FALSE(stretches.is_to_be_asked(page(10'000 + Stretches::kNear - 1), kNow + 1));
  EXPECT_FALSE(stretches.is_to_be_asked(page(10'000 - Stretches::kNear + 1), kNow + 1));
  EXPECT_TRUE(stretches.is_to_be_asked(page(10'000 + Stretches::kNear), kNow + 1));
  EXPECT_TRUE(stretches.is_to_be_asked(page(10'000), kNow + Stretches::kLost)) << "it was lost";
}

TEST(Stretches, ANodeThatKnowsNothingIsAskedAgain) {
  Stretches stretches;
  ASSERT_TRUE(stretches.is_to_be_asked(page(100), kNow));
  stretches.note(page(100), {}, kNow + 1);
  EXPECT_EQ(stretches.end_of(page(100)), std::nullopt);
  EXPECT_TRUE(stretches.is_to_be_asked(page(100), kNow + 2));
}

TEST(Stretches, FewQuestionsAreOnTheirWay) {
  Stretches stretches;
  for (std::uint64_t i = 0; i < Stretches::kMostAsked; ++i) {
    EXPECT_TRUE(stretches.is_to_be_asked(page(i * 2 * Stretches::kNear), kNow));
  }
  EXPECT_FALSE(stretches.is_to_be_asked(page(1'000'000), kNow));
}

TEST(Stretches, TheLatestWordCounts) {
  Stretches stretches;
  stretches.note(page(100), {page(100), 20}, kNow);
  stretches.note(page(130), {page(120), 20}, kNow);
  stretches.note(page(130), {page(110), 25}, kNow + 1);
  EXPECT_EQ(stretches.end_of(page(115)), page(135));
  EXPECT_EQ(stretches.end_of(page(105)), std::nullopt) << "it overlapped";
  EXPECT_EQ(stretches.end_of(page(137)), std::nullopt);
}

TEST(Stretches, OldOnesMakeRoom) {
  Stretches stretches;
  const auto first = [](std::uint64_t i) { return page(i * 100); };
  for (std::uint64_t i = 0; i <= Stretches::kMost; ++i) {
    stretches.note(first(i), {first(i), 100}, kNow);
  }
  EXPECT_EQ(stretches.end_of(first(0)), std::nullopt);
  for (std::uint64_t i = 1; i <= Stretches::kMost; ++i) {
    EXPECT_EQ(stretches.end_of(first(i)), first(i + 1));
  }
}

}  // namespace
}  // namespace amasia::dsm
