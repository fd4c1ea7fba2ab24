// SPDX-License-Identifier: Apache-2.0
#include "dsm/fill_around.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace amasia::dsm {
namespace {

constexpr std::uint64_t kBlock = FillAround::kBlock;

// Touches pages in this order, of which those in `here` need no wait; returns the waits.
std::uint64_t touch(FillAround& around, const std::vector<std::uint64_t>& pages,
                    std::set<std::uint64_t>& here) {
  std::uint64_t waits = 0;
  for (const std::uint64_t page : pages) {
    if (!here.insert(page).second) continue;
    ++waits;
    const std::uint64_t wanted = around.on_fault(PageIndex{page});
    for (std::uint64_t i = 0; i < kBlock; ++i) {
      if ((wanted >> i & 1) != 0) here.insert(page - page % kBlock + i);
    }
  }
  return waits;
}

TEST(BlockInTurn, InItsTurnANodeCollectsWhatItHadAndFillsBlocks) {
  BlockInTurn block{.own = true, .had = true, .known = 0b1100, .scattered = 0};
  EXPECT_EQ(block.wanted(), 0b1100U);
  block.scattered = 0b1010;
  EXPECT_EQ(block.wanted(), 0b1110U);
  block.had = false;  // a page that it was given in the same turn, or never had
  EXPECT_EQ(block.wanted(), 0b1010U);
}

TEST(BlockInTurn, InOthersTurnsItAsksForWhatIsNewToIt) {
  const BlockInTurn block{.own = false, .had = true, .known = 0b1100, .scattered = 0b1010};
  EXPECT_EQ(block.wanted(), 0b0010U);
}

TEST(FillAround, TheThirdFaultFillsTheBlock) {
  FillAround around;
  EXPECT_EQ(around.on_fault(PageIndex{640}), 0U);
  EXPECT_EQ(around.on_fault(PageIndex{700}), 0U);
  EXPECT_EQ(around.on_fault(PageIndex{643}), ~(std::uint64_t{1} | 1ULL << 60 | 1ULL << 3));
}

TEST(FillAround, FaultsOfOtherBlocksDoNotCount) {
  FillAround around;
  for (std::uint64_t block = 1; block <= 100; ++block) {
    EXPECT_EQ(around.on_fault(PageIndex{block * kBlock}), 0U);
    EXPECT_EQ(around.on_fault(PageIndex{block * kBlock + 7}), 0U);
  }
}

TEST(FillAround, AGatherOverAnArrayWaitsForAFewPagesOfEachBlock) {
  constexpr std::uint64_t kPages = 20 * kBlock;
  std::mt19937_64 random(7);
  FillAround around;
  std::vector<std::uint64_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 100 * kBlock);
  std::shuffle(pages.begin(), pages.end(), random);
  std::set<std::uint64_t> here;
  EXPECT_EQ(touch(around, pages, here), 20 * FillAround::kFirst);
  // Other nodes have written all of it: it is asked for again, not quite so soon.
  here.clear();
  EXPECT_LE(touch(around, pages, here), 20 * (FillAround::kAgain + FillAround::kFirst));
}

TEST(FillAround, AFewPagesThatNodesTakeInTurnsFillTheirBlockOnce) {
  FillAround around;
  const std::vector<std::uint64_t> fought_for{65, 70, 90, 120, 121};
  int filled = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    for (const std::uint64_t page : fought_for) {
      if (around.on_fault(PageIndex{page}) != 0) ++filled;
    }
  }
  EXPECT_EQ(filled, 1);
}

TEST(FillAround, WhatWasLongAgoIsForgotten) {
  FillAround around;
  const auto three = [&around] {
    around.on_fault(PageIndex{64});
    around.on_fault(PageIndex{65});
    return around.on_fault(PageIndex{66});
  };
  EXPECT_NE(three(), 0U);
  EXPECT_EQ(three(), 0U);
  for (std::uint64_t i = 0; i <= FillAround::kMemory; ++i) around.on_fault(PageIndex{128 + i % 2});
  EXPECT_NE(three(), 0U);
}

TEST(FillAround, BlocksThatShareAnEntryOnlyForgetEachOther) {
  FillAround around;
  const std::uint64_t far = FillAround::kBlocks * kBlock;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(around.on_fault(PageIndex{kBlock + static_cast<std::uint64_t>(i) % kBlock}), 0U);
    EXPECT_EQ(around.on_fault(PageIndex{far + kBlock}), 0U);
  }
}

}  // namespace
}  // namespace amasia::dsm
