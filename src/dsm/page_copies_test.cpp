// SPDX-License-Identifier: Apache-2.0
#include "dsm/page_copies.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace amasia::dsm {
namespace {

constexpr PageCount kLimit = PageCount{1} << 22;

PageCopies make() {
  auto made = PageCopies::make(kLimit);
  AMASIA_CHECK(made.ok(), "a test needs its table");
  return std::move(made).value();
}

PageRun run(std::uint64_t first, PageCount count) { return {PageIndex{first}, count}; }

std::optional<std::uint64_t> next(PageCopies& copies, std::uint32_t looks = 100'000) {
  const auto found = copies.next_victim(&looks);
  if (!found.has_value()) return std::nullopt;
  return found->value;
}

TEST(PageCopies, WhatHasJustComeIsLetOffOnce) {
  PageCopies copies = make();
  copies.note(run(10, 3));
  copies.note(run(kLimit - 1, 1));
  EXPECT_EQ(copies.count(), 4U);
  EXPECT_EQ(next(copies), 10U);  // after a whole turn
  copies.note(run(11, 1));       // came again
  copies.note(run(5000, 1));
  EXPECT_EQ(next(copies), 12U);
  EXPECT_EQ(next(copies), kLimit - 1);
  EXPECT_EQ(next(copies), 10U);
  EXPECT_EQ(next(copies), 11U);
  EXPECT_EQ(next(copies), 12U);
  EXPECT_EQ(next(copies), 5000U);
}

TEST(PageCopies, LooksAreBounded) {
  PageCopies copies = make();
  copies.note(run(0, 100));
  std::uint32_t looks = 60;
  EXPECT_FALSE(copies.next_victim(&looks).has_value());
  EXPECT_EQ(looks, 0U);
  looks = 60;
  EXPECT_EQ(copies.next_victim(&looks)->value, 0U);
  PageCopies empty = make();
  EXPECT_EQ(next(empty), std::nullopt);
}

TEST(PageCopies, AgreesWithASet) {
  std::mt19937_64 random(7);
  PageCopies copies = make();
  std::set<std::uint64_t> truth;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t page = random() % (random() % 2 == 0 ? 300 : kLimit);
    if (truth.contains(page) && random() % 2 == 0) {
      copies.forget(run(page, 1));
      truth.erase(page);
    } else {
      copies.note(run(page, 1));
      truth.insert(page);
    }
    ASSERT_EQ(copies.count(), truth.size());
    ASSERT_EQ(copies.has_memory(PageIndex{page}), truth.contains(page));
  }
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < truth.size(); ++i) seen.insert(*next(copies));
  EXPECT_EQ(seen, truth);
  for (const std::uint64_t page : truth) copies.forget(run(page, 1));
  EXPECT_EQ(copies.count(), 0U);
  EXPECT_EQ(next(copies), std::nullopt);
}

}  // namespace
}  // namespace amasia::dsm
