// SPDX-License-Identifier: Apache-2.0
#include "dsm/lent_pages.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

namespace amasia::dsm {
namespace {

constexpr PageCount kBlock = LentPages::kBlock;

LentPages make(PageCount page_limit) {
  auto made = LentPages::make(page_limit);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

TEST(LentPages, AtFirstThereIsNone) {
  LentPages lent = make(1000 * kBlock);
  EXPECT_FALSE(lent.take().has_value());
}

TEST(LentPages, ABlockIsTakenOnceForAllItsPages) {
  LentPages lent = make(1000 * kBlock);
  for (PageCount i = 0; i < kBlock; ++i) lent.note({PageIndex{700 * kBlock + i}, 1});
  EXPECT_EQ(lent.take(), (PageRun{PageIndex{700 * kBlock}, kBlock}));
  EXPECT_FALSE(lent.take().has_value());
  lent.note({PageIndex{701 * kBlock - 1}, 1});
  EXPECT_TRUE(lent.take().has_value());
}

TEST(LentPages, ALongRunLiesInSeveralBlocks) {
  LentPages lent = make(1000 * kBlock);
  lent.note({PageIndex{2 * kBlock - 1}, kBlock + 2});
  for (std::uint64_t block = 1; block <= 3; ++block) {
    EXPECT_EQ(lent.take(), (PageRun{PageIndex{block * kBlock}, kBlock}));
  }
  EXPECT_FALSE(lent.take().has_value());
}

TEST(LentPages, TheLastPageHasABlockToo) {
  LentPages lent = make(64 * kBlock + 1);
  lent.note({PageIndex{64 * kBlock}, 1});
  EXPECT_EQ(lent.take()->first, PageIndex{64 * kBlock});
}

TEST(LentPages, WhatIsNotedIsTakenAndNothingElse) {
  constexpr PageCount kPages = 5000 * kBlock;
  std::mt19937_64 random(3);
  LentPages lent = make(kPages);
  std::set<std::uint64_t> noted;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 3 != 0) {
      const std::uint64_t page = random() % 2 == 0 ? random() % kPages : random() % (3 * kBlock);
      lent.note({PageIndex{page}, 1});
      noted.insert(page / kBlock);
    } else {
      const auto run = lent.take();
      ASSERT_EQ(run.has_value(), !noted.empty());
      if (run.has_value()) {
        EXPECT_EQ(run->count, kBlock);
        EXPECT_EQ(noted.erase(run->first.value / kBlock), 1U);
      }
    }
  }
}

}  // namespace
}  // namespace amasia::dsm
