// SPDX-License-Identifier: Apache-2.0
#include "dsm/recall.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace amasia::dsm {
namespace {

using Want = Recall::Want;
using Asked = std::set<std::pair<std::uint64_t, Want>>;

constexpr std::uint64_t kPlace = 77;

// What the recall asks for, of pages in the state in which that makes sense.
Asked enter(Recall& recall, std::uint64_t place, const std::set<std::uint64_t>& valid = {}) {
  Asked asked;
  recall.enter(place, [&](PageIndex page, Want want) {
    if (valid.contains(page.value)) return false;
    asked.emplace(page.value, want);
    return true;
  });
  return asked;
}

// An entry that needs these pages to read: faults on what was not asked for. Returns the faults.
std::size_t visit(Recall& recall, std::uint64_t place, const std::set<std::uint64_t>& pages) {
  const Asked asked = enter(recall, place);
  std::size_t faults = 0;
  for (const std::uint64_t page : pages) {
    if (asked.contains({page, Want::kRead})) continue;
    ++faults;
    recall.on_fault(place, PageIndex{page}, Want::kRead);
  }
  return faults;
}

TEST(Recall, AsksForWhatTwoEntriesInARowMissed) {
  Recall recall;
  EXPECT_EQ(visit(recall, kPlace, {5, 900}), 2U);
  EXPECT_EQ(visit(recall, kPlace, {5, 900}), 2U);
  EXPECT_EQ(enter(recall, kPlace), (Asked{{5, Want::kRead}, {900, Want::kRead}}));
}

TEST(Recall, OneFaultIsNoHabit) {
  Recall recall;
  visit(recall, kPlace, {5});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(enter(recall, kPlace).empty());
  recall.on_fault(kPlace, PageIndex{5}, Want::kRead);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(enter(recall, kPlace).empty());
}

TEST(Recall, ArraysThatTakeTurnsAreAskedForInTurns) {
  Recall recall;
  for (int round = 0; round < 2; ++round) {
    visit(recall, kPlace, {10});
    visit(recall, kPlace, {20});
  }
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(enter(recall, kPlace), (Asked{{10, Want::kRead}}));
    EXPECT_EQ(enter(recall, kPlace), (Asked{{20, Want::kRead}}));
  }
}

TEST(Recall, WhatIsStillHereIsAskedForLater) {
  Recall recall;
  visit(recall, kPlace, {5});
  visit(recall, kPlace, {5});
  EXPECT_TRUE(enter(recall, kPlace, {5}).empty());
  EXPECT_EQ(enter(recall, kPlace), (Asked{{5, Want::kRead}}));
}

TEST(Recall, NeedNotBeToldOfAPlaceWhereNothingHappens) {
  Recall recall;
  const auto ask = [](PageIndex, Want) { return true; };
  visit(recall, kPlace, {5});
  visit(recall, kPlace, {5});
  for (std::uint32_t i = 0; i + 1 < Recall::kRelearn + Recall::kIdle; ++i) {
    EXPECT_TRUE(recall.enter(kPlace, ask)) << i;
  }
  EXPECT_FALSE(recall.enter(kPlace, ask));
  recall.on_fault(kPlace, PageIndex{5}, Want::kRead);
  EXPECT_TRUE(recall.enter(kPlace, ask));
}

TEST(Recall, PlacesAreKeptApart) {
  Recall recall;
  const std::uint64_t other = 78;
  ASSERT_NE(Recall::slot_of(kPlace), Recall::slot_of(other));
  for (int i = 0; i < 2; ++i) {
    visit(recall, kPlace, {5});
    visit(recall, other, {6});
  }
  EXPECT_EQ(enter(recall, kPlace), (Asked{{5, Want::kRead}}));
  EXPECT_EQ(enter(recall, other), (Asked{{6, Want::kRead}}));
}

TEST(Recall, NothingIsRememberedOfNoPlace) {
  Recall recall;
  for (int i = 0; i < 3; ++i) recall.on_fault(0, PageIndex{5}, Want::kRead);
  EXPECT_TRUE(enter(recall, kPlace).empty());
}

TEST(Recall, WhatIsAskedForInVainIsNotAskedForForLongerAndLonger) {
  Recall recall;
  std::size_t asked = 0, entries = 2;
  visit(recall, kPlace, {5});
  visit(recall, kPlace, {5});
  for (; entries < 2000; ++entries) {
    asked += enter(recall, kPlace).size();
    recall.on_fault(kPlace, PageIndex{5}, Want::kRead);  // it was taken away again
  }
  EXPECT_GE(asked, 3U);
  EXPECT_LE(asked, 8U);  // 32 + 64 + 128 + 256 + ... < 2000
}

TEST(Recall, ToWriteWhatWasAskedForToReadIsAnotherNeed) {
  Recall recall;
  for (int i = 0; i < 2; ++i) {
    visit(recall, kPlace, {5});
    recall.on_fault(kPlace, PageIndex{5}, Want::kOwn);
  }
  // The engine asks to own it only if there is a read copy then.
  EXPECT_EQ(enter(recall, kPlace), (Asked{{5, Want::kRead}, {5, Want::kOwn}}));
  recall.on_fault(kPlace, PageIndex{5}, Want::kOwn);
  EXPECT_EQ(enter(recall, kPlace), (Asked{{5, Want::kRead}})) << "owned in vain, read with success";
}

TEST(Recall, WhatIsNoLongerNeededIsForgotten) {
  Recall recall;
  visit(recall, kPlace, {5});
  visit(recall, kPlace, {5});
  std::size_t asked = 0;
  for (int i = 0; i < 1000; ++i) asked += enter(recall, kPlace).size();
  EXPECT_EQ(asked, Recall::kRelearn);
}

TEST(Recall, AHabitCostsAFaultNowAndThen) {
  Recall recall;
  std::size_t faults = 0;
  const std::size_t entries = 1000;
  for (std::size_t i = 0; i < entries; ++i) faults += visit(recall, kPlace, {1, 2, 3});
  EXPECT_GE(faults, 3 * entries / (Recall::kRelearn + 2));
  EXPECT_LE(faults, 3 * entries / Recall::kRelearn + 6);
}

TEST(Recall, TheOldestNeedMakesRoom) {
  Recall recall;
  std::set<std::uint64_t> many;
  for (std::uint64_t page = 1; page <= Recall::kNeeds; ++page) many.insert(page);
  visit(recall, kPlace, {1000});
  visit(recall, kPlace, many);
  visit(recall, kPlace, many);
  const Asked asked = enter(recall, kPlace);
  EXPECT_EQ(asked.size(), Recall::kNeeds);
  EXPECT_FALSE(asked.contains({1000, Want::kRead}));
}

}  // namespace
}  // namespace amasia::dsm
