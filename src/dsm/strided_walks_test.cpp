// SPDX-License-Identifier: Apache-2.0
#include "dsm/strided_walks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace amasia::dsm {
namespace {

constexpr std::uint64_t kPage = 4096;

// A thread that touches bytes, and faults where the page is not here or was left out.
struct Thread {
  StridedWalks& walks;
  std::set<std::uint64_t> here{};
  std::uint64_t waits = 0, asked = 0, vain = 0;

  void touch(std::uint64_t byte, bool write) {
    const std::uint64_t page = byte / kPage;
    PageIndex trigger;
    const bool is_here = here.contains(page);
    if (is_here && !walks.find_trigger({PageIndex{page}, 1}, &trigger)) return;
    if (!is_here) ++waits;
    here.insert(page);
    const auto plan = walks.on_fault(PageIndex{page}, write);
    for (std::size_t i = 0; i < plan.count; ++i) {
      if (here.insert(plan.pages[i].value).second) ++asked;
    }
  }
};

// Any step above a page, forwards and backwards: no more waits than it takes to know the walk and
// to open windows, and hardly a page too many.
TEST(StridedWalks, AWalkOfAnyStepIsFollowed) {
  std::mt19937 random(5);
  constexpr int kRounds = 2000;
  constexpr std::int64_t kSteps = 500;
  std::uint64_t waits = 0, asked = 0;
  for (int round = 0; round < kRounds; ++round) {
    StridedWalks walks(true);
    Thread thread{walks};
    const std::int64_t step = 2 * kPage + random() % (100 * kPage);
    const std::int64_t signed_step = random() % 2 == 0 ? step : -step;
    const std::int64_t first = std::int64_t{10'000'000} * kPage + random() % kPage;
    for (std::int64_t i = 0; i < kSteps; ++i) {
      thread.touch(static_cast<std::uint64_t>(first + i * signed_step), true);
    }
    EXPECT_LE(thread.waits, 100U) << "step " << signed_step << " from " << first;
    EXPECT_LE(thread.asked + thread.waits, kSteps * 2U) << "step " << signed_step;
    waits += thread.waits;
    asked += thread.asked;
  }
  EXPECT_LE(waits / kRounds, 20U);
  EXPECT_LE(asked / kRounds, kSteps * 4U / 3);
}

TEST(StridedWalks, AWholeNumberOfPagesCostsSixWaits) {
  StridedWalks walks(true);
  Thread thread{walks};
  for (std::uint64_t i = 0; i < 1000; ++i) thread.touch((100'000 + i * 40) * kPage, true);
  EXPECT_EQ(thread.waits, StridedWalks::kFaultsBefore);
  EXPECT_LE(thread.asked, 1000U + 2 * StridedWalks::kLargestWindow);
}

TEST(StridedWalks, ReadsWithinABlockAreLeftToFillAround) {
  for (const std::uint64_t step : {40, 64, 100}) {
    StridedWalks walks(true);
    Thread thread{walks};
    for (std::uint64_t i = 0; i < 100; ++i) thread.touch((100'000 + i * step) * kPage, false);
    EXPECT_EQ(thread.asked > 0, step >= FillAround::kBlock) << step;
  }
}

// Several arrays at once, as many as are followed.
TEST(StridedWalks, InterleavedWalksAreToldApart) {
  constexpr std::uint64_t kArrays = 10;
  StridedWalks walks(true);
  Thread thread{walks};
  std::mt19937 random(6);
  std::vector<std::uint64_t> first;
  for (std::uint64_t a = 0; a < kArrays; ++a) {
    first.push_back((a * 10'000'019 + random() % 1000) * kPage + random() % kPage);
  }
  for (std::uint64_t i = 0; i < 300; ++i) {
    for (const std::uint64_t begin : first) thread.touch(begin + kPage + i * 163'848, true);
  }
  EXPECT_LE(thread.waits, kArrays * 25);
}

// Pages that are here already cause no fault: the walk is found again behind them.
TEST(StridedWalks, AWalkGoesOnBehindPagesThatAreHere) {
  StridedWalks walks(true);
  Thread thread{walks};
  constexpr std::uint64_t kStep = 21'600;
  for (std::uint64_t i = 40; i < 400; ++i) {
    if (i % 20 < 5) thread.here.insert((1'000 * kPage + i * kStep) / kPage);
  }
  const std::size_t were_here = thread.here.size();
  for (std::uint64_t i = 0; i < 400; ++i) thread.touch(1'000 * kPage + i * kStep, true);
  EXPECT_LE(thread.waits, 45U) << were_here;
}

// Random pages make lines by chance. Few windows are opened, and they stay small.
TEST(StridedWalks, RandomPagesAskForLittle) {
  for (const std::uint64_t range : {200, 2'000, 100'000}) {
    StridedWalks walks(true);
    std::mt19937_64 random(7);
    std::uint64_t asked = 0;
    constexpr std::uint64_t kFaults = 20'000;
    for (std::uint64_t i = 0; i < kFaults; ++i) {
      asked += walks.on_fault(PageIndex{1'000 + random() % range}, random() % 2 == 0).count;
    }
    EXPECT_LE(asked, kFaults / 5) << "of " << range;
  }
}

// Five arrays, one behind the other, each walked page by page: their first pages are in line.
TEST(StridedWalks, EqualArraysAreNoWalk) {
  StridedWalks walks(true);
  std::uint64_t asked = 0;
  for (std::uint64_t page = 0; page < 100; ++page) {
    for (std::uint64_t array = 0; array < 5; ++array) {
      asked += walks.on_fault(PageIndex{1 + array * 1000 + page}, false).count;
    }
  }
  EXPECT_EQ(asked, 0U);
}

TEST(StridedWalks, ReadsAndWritesAreWalksOfTheirOwn) {
  StridedWalks walks(true);
  std::size_t asked = 0;
  for (std::uint64_t i = 0; i < 2 * (StridedWalks::kFaultsBefore - 1); ++i) {
    asked += walks.on_fault(PageIndex{100 + 10 * i}, i < StridedWalks::kFaultsBefore - 1).count;
  }
  EXPECT_EQ(asked, 0U);
}

// Makes a walk that writes every tenth page, for which a window is open, and gives its trigger.
PageIndex begin_walk(StridedWalks& walks) {
  for (std::uint64_t i = 0; i < StridedWalks::kFaultsBefore; ++i) {
    walks.on_fault(PageIndex{100 + 10 * i}, true);
  }
  PageIndex trigger;
  EXPECT_TRUE(walks.find_trigger({PageIndex{100}, 1000}, &trigger));
  return trigger;
}

// A walk that is over leaves a page out of the view once, and not each time that it comes again.
TEST(StridedWalks, ATriggerThatNobodyComesByForIsMetOnce) {
  StridedWalks walks(true);
  const PageIndex trigger = begin_walk(walks);
  walks.on_fault(PageIndex{100 + 10 * 50}, true);  // none of the next steps
  EXPECT_TRUE(walks.is_trigger(trigger));
  // The next walk begins anew, by steps half as long: they count.
  for (std::uint64_t i = 0; i < StridedWalks::kFaultsBefore; ++i) {
    const std::uint64_t left = StridedWalks::kFaultsBefore - 1 - i;
    walks.on_fault(PageIndex{trigger.value - 5 * left}, true);
  }
  EXPECT_FALSE(walks.is_trigger(trigger));
}

// `a[i] += x` loads first: a page that was left out is met by a read; the rest is to be written.
TEST(StridedWalks, AWalkThatWritesGoesOnWhereItReadsFirst) {
  StridedWalks walks(true);
  const PageIndex trigger = begin_walk(walks);
  const auto plan = walks.on_fault(trigger, false);
  EXPECT_GT(plan.count, 0U);
  EXPECT_TRUE(plan.write);
}

TEST(StridedWalks, SwitchedOffAsksForNothing) {
  StridedWalks walks(false);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(walks.on_fault(PageIndex{100 + 10 * i}, true).count, 0U);
  }
}

}  // namespace
}  // namespace amasia::dsm
