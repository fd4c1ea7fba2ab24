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

TEST(ReadAhead, AFaultInsideTheWindowKeepsTheStreamAndAsksForNothing) {
  ReadAhead ahead(64);
  ahead.on_fault(PageIndex{10}, false, kEnd);
  ahead.on_fault(PageIndex{11}, false, kEnd);
  EXPECT_EQ(ahead.on_fault(PageIndex{13}, false, kEnd).run.count, 0U);
  EXPECT_EQ(ahead.on_fault(PageIndex{14}, false, kEnd).run.first, PageIndex{16});
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

TEST(ReadAhead, AWalkThatHasBecomeShorterIsLearntAnewAfterAWhile) {
  ReadAhead ahead(64);
  std::set<std::uint64_t> asked;
  walk(ahead, 100, 5, false, &asked);
  PageCount asked_for = 0;
  for (std::uint32_t round = 0; round <= ReadAhead::kRelearn; ++round) {
    asked_for = ahead.on_fault(PageIndex{100}, false, kEnd).run.count;
    if (round == 0) {
      EXPECT_GE(asked_for, 4U);
    }
  }
  EXPECT_EQ(asked_for, 0U);
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
