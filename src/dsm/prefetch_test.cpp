// SPDX-License-Identifier: Apache-2.0
#include "dsm/prefetch.hpp"

#include <gtest/gtest.h>

#include <set>

namespace amasia::dsm {
namespace {

constexpr PageIndex kEnd{1'000'000};

// Walks over [first, first + count) as a thread would, faulting only where pages are missing or
// left out; returns how often it had to wait for a page that was not asked for.
std::uint64_t walk(ReadAhead& ahead, std::uint64_t first, std::uint64_t count, bool write,
                   std::set<std::uint64_t>* asked) {
  std::uint64_t waits = 0;
  for (std::uint64_t page = first; page < first + count; ++page) {
    PageIndex trigger;
    const bool here = asked->contains(page);
    const bool left_out = ahead.find_trigger({PageIndex{page}, 1}, &trigger);
    if (here && !left_out) continue;
    if (!here) ++waits;
    asked->insert(page);
    const auto plan = ahead.on_fault(PageIndex{page}, write, kEnd);
    for (PageCount i = 0; i < plan.run.count; ++i) asked->insert(plan.run.first.value + i);
  }
  return waits;
}

// The same by a node whose pages are taken away before each walk. What it asks for, the page after
// it.
std::uint64_t asked_until(ReadAhead& ahead, std::uint64_t first, std::uint64_t count, bool write,
                          std::uint64_t* waits) {
  std::set<std::uint64_t> asked;
  *waits = walk(ahead, first, count, write, &asked);
  return *asked.rbegin() + 1;
}

TEST(ReadAhead, OneFaultAsksForNothing) {
  ReadAhead ahead(64);
  EXPECT_EQ(ahead.on_fault(PageIndex{10}, false, kEnd).run.count, 0U);
  EXPECT_EQ(ahead.on_fault(PageIndex{500}, false, kEnd).run.count, 0U);
  EXPECT_EQ(ahead.on_fault(PageIndex{9}, false, kEnd).run.count, 0U);
}

TEST(ReadAhead, ASequentialWalkWaitsTwice) {
  ReadAhead ahead(64);
  std::set<std::uint64_t> asked;
  EXPECT_EQ(walk(ahead, 100, 1000, false, &asked), 2U);
  EXPECT_LE(*asked.rbegin(), 1100U + 2 * 64);
}

TEST(ReadAhead, AsManyInterleavedWalksAsStreamsAreToldApart) {
  ReadAhead ahead(32);
  std::set<std::uint64_t> asked;
  std::uint64_t waits = 0;
  for (std::uint64_t step = 0; step < 200; ++step) {
    for (std::uint64_t k = 0; k < ReadAhead::kStreams; ++k) {
      waits += walk(ahead, (k + 1) * 1'000 + step, 1, false, &asked);
    }
  }
  EXPECT_EQ(waits, 2 * ReadAhead::kStreams);
}

TEST(ReadAhead, WindowsDoubleUpToTheLimitAndStopAtTheSegment) {
  ReadAhead ahead(16);
  EXPECT_EQ(ahead.on_fault(PageIndex{10}, false, kEnd).run.count, 0U);
  const auto first = ahead.on_fault(PageIndex{11}, false, kEnd);
  EXPECT_EQ(first.run, (PageRun{PageIndex{12}, 4}));
  ASSERT_TRUE(first.has_trigger);
  const auto second = ahead.on_fault(PageIndex{14}, false, kEnd);
  EXPECT_EQ(second.run, (PageRun{PageIndex{16}, 8}));
  const auto third = ahead.on_fault(PageIndex{16}, false, kEnd);
  EXPECT_EQ(third.run, (PageRun{PageIndex{24}, 16}));
  const auto fourth = ahead.on_fault(PageIndex{24}, false, PageIndex{45});
  EXPECT_EQ(fourth.run, (PageRun{PageIndex{40}, 5}));
  EXPECT_EQ(ahead.on_fault(PageIndex{40}, false, PageIndex{45}).run.count, 0U);
}

TEST(ReadAhead, WhoWalksOnBehindTheSegmentBeginsAnew) {
  ReadAhead ahead(16);
  std::set<std::uint64_t> asked;
  for (std::uint64_t page = 10; page < 30; ++page) {
    const auto plan = ahead.on_fault(PageIndex{page}, false, PageIndex{30});
    for (PageCount i = 0; i < plan.run.count; ++i) asked.insert(plan.run.first.value + i);
  }
  EXPECT_EQ(*asked.rbegin(), 29U);
  EXPECT_EQ(ahead.on_fault(PageIndex{30}, false, kEnd).run.count, 0U);
  EXPECT_EQ(ahead.on_fault(PageIndex{31}, false, kEnd).run, (PageRun{PageIndex{32}, 4}));
}

TEST(ReadAhead, WritesNeedALongerWalkAndAskForLess) {
  ReadAhead ahead(16);
  for (std::uint64_t page = 10; page < 13; ++page) {
    EXPECT_EQ(ahead.on_fault(PageIndex{page}, true, kEnd).run.count, 0U);
  }
  const auto plan = ahead.on_fault(PageIndex{13}, true, kEnd);
  EXPECT_EQ(plan.run, (PageRun{PageIndex{14}, 4}));
  ASSERT_TRUE(plan.has_trigger);
  EXPECT_EQ(ahead.on_fault(PageIndex{16}, true, kEnd).run.count, 8U);
  EXPECT_EQ(ahead.on_fault(PageIndex{18}, true, kEnd).run.count, 8U);
}

TEST(ReadAhead, AWritingWalkWaitsFourTimes) {
  ReadAhead ahead(64);
  std::set<std::uint64_t> asked;
  EXPECT_EQ(walk(ahead, 100, 1000, true, &asked), 4U);
  EXPECT_LE(*asked.rbegin(), 1100U + 2 * 32);
}

TEST(ReadAhead, ATriggerIsOfOneKindOfAccess) {
  ReadAhead ahead(64);
  ahead.on_fault(PageIndex{10}, false, kEnd);
  ahead.on_fault(PageIndex{11}, false, kEnd);
  EXPECT_TRUE(ahead.is_trigger(PageIndex{14}, false));
  EXPECT_FALSE(ahead.is_trigger(PageIndex{14}, true));
  EXPECT_FALSE(ahead.is_trigger(PageIndex{15}, false));
}

TEST(ReadAhead, AFaultThatComesBeforeThePageKeepsTheStreamAndAsksForNothing) {
  ReadAhead ahead(64);
  ahead.on_fault(PageIndex{10}, false, kEnd);
  ahead.on_fault(PageIndex{11}, false, kEnd);
  EXPECT_EQ(ahead.on_fault(PageIndex{13}, false, kEnd, true).run.count, 0U);
  EXPECT_EQ(ahead.on_fault(PageIndex{14}, false, kEnd).run.first, PageIndex{16});
}

TEST(ReadAhead, AWalkOverPagesThatOthersHaveTakenSinceIsANewOne) {
  ReadAhead ahead(64);
  std::set<std::uint64_t> asked;
  walk(ahead, 100, 1000, false, &asked);
  const std::uint64_t last = *asked.rbegin();  // of a window that nobody has come to the end of
  asked.clear();
  EXPECT_EQ(walk(ahead, last - 50, 50, false, &asked), 2U);
}

TEST(ReadAhead, PageZeroContinuesNothing) {
  ReadAhead ahead(64);
  ahead.on_fault(PageIndex{10}, false, kEnd);
  ahead.on_fault(PageIndex{0}, false, kEnd);
  EXPECT_EQ(ahead.reach_from(PageIndex{10}, false), 0U);
  EXPECT_FALSE(ahead.is_trigger(PageIndex{0}, false));
}

TEST(ReadAhead, AWalkOverTheSamePagesWaitsOnceWhenItIsKnown) {
  for (const bool write : {false, true}) {
    ReadAhead ahead(64);
    for (int round = 0; round < 10; ++round) {
      std::set<std::uint64_t> asked;  // another node takes the pages between the rounds
      const std::uint64_t waits = walk(ahead, 100, 5, write, &asked);
      if (round > 1) {
        EXPECT_EQ(waits, 1U);
      }
      EXPECT_LE(*asked.rbegin(), 100U + 2 * 5 + ReadAhead::kFirstWindow);
    }
  }
}

TEST(ReadAhead, AKnownWalkAsksForNothingBeyondItsEnd) {
  for (const bool write : {false, true}) {
    for (const std::uint64_t count : {2, 3, 5, 29, 74, 147, 1000}) {
      ReadAhead ahead(128);
      std::uint64_t waits = 0;
      for (int round = 0; round < 16; ++round) {
        asked_until(ahead, 100, count, write, &waits);
      }
      for (int round = 0; round < 200; ++round) {
        ASSERT_EQ(asked_until(ahead, 100, count, write, &waits), 100 + count)
            << count << " pages, round " << round;
        ASSERT_EQ(waits, 1U) << count << " pages, round " << round;
      }
    }
  }
}

TEST(ReadAhead, AWalkThatGoesOnFurtherIsFollowedAndRemembered) {
  for (const bool write : {false, true}) {
    ReadAhead ahead(128);
    std::uint64_t waits = 0;
    for (int round = 0; round < 8; ++round) asked_until(ahead, 100, 20, write, &waits);
    EXPECT_LE(asked_until(ahead, 100, 60, write, &waits), 100U + 3 * 60);
    EXPECT_LE(waits, write ? 5U : 3U);
    for (int round = 0; round < 16; ++round) asked_until(ahead, 100, 60, write, &waits);
    EXPECT_EQ(asked_until(ahead, 100, 60, write, &waits), 100U + 60);
    EXPECT_EQ(waits, 1U);
  }
}

TEST(ReadAhead, AWalkThatHasBecomeShorterIsNoticedAfterAWhile) {
  for (const bool write : {false, true}) {
    ReadAhead ahead(128);
    std::uint64_t waits = 0;
    for (int round = 0; round < 8; ++round) asked_until(ahead, 100, 60, write, &waits);
    EXPECT_EQ(asked_until(ahead, 100, 5, write, &waits), 100U + 60);
    for (std::uint32_t round = 0; round < 2 * ReadAhead::kRelearn; ++round) {
      asked_until(ahead, 100, 5, write, &waits);
    }
    EXPECT_LE(asked_until(ahead, 100, 5, write, &waits), 100U + 2 * 5);
  }
}

TEST(ReadAhead, ARepeatedWalkEndsAtTheSegment) {
  ReadAhead ahead(64);
  std::set<std::uint64_t> asked;
  walk(ahead, 100, 5, false, &asked);
  EXPECT_EQ(ahead.on_fault(PageIndex{100}, false, PageIndex{103}).run,
            (PageRun{PageIndex{101}, 2}));
}

TEST(ReadAhead, NoWindowMeansNever) {
  ReadAhead ahead(0);
  std::set<std::uint64_t> asked;
  EXPECT_EQ(walk(ahead, 1, 50, false, &asked), 50U);
}

}  // namespace
}  // namespace amasia::dsm
