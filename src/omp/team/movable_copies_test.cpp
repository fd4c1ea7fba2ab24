// SPDX-License-Identifier: Apache-2.0
#include "omp/team/movable_copies.hpp"

#include <gtest/gtest.h>

#include <array>

namespace amasia::omp {
namespace {

constexpr std::uintptr_t kHeap = 0x7e90'0000'1000, kHeapEnd = kHeap + 0x1000;

// A stack of words, the lowest first, with copies at the given words and the list somewhere else,
// or on the stack itself.
class MovableCopies : public testing::Test {
 protected:
  void* word(std::size_t index) { return &stack_.at(index); }
  std::uintptr_t address(std::size_t index) const {
    return reinterpret_cast<std::uintptr_t>(stack_.data() + index);
  }
  bool movable(std::span<void* const> list) const {
    return are_movable(list, address(0), address(0) + sizeof stack_,
                       [](std::uintptr_t at) { return at >= kHeap && at < kHeapEnd; });
  }

  alignas(64) std::array<std::uintptr_t, 80> stack_{};
};

TEST_F(MovableCopies, NumbersMayBeMoved) {
  stack_.fill(0x4059'0000'0000'0000);  // 100.0
  const std::array list = {word(3), word(7), word(8)};
  EXPECT_TRUE(movable(list));
}

TEST_F(MovableCopies, WhatOwnsABlockOfTheHeapMayNot) {
  const std::array list = {word(3), word(20)};
  for (const std::size_t at : {3u, 5u, 19u, 20u, 20u + 31u}) {
    stack_ = {};
    stack_[at] = kHeapEnd - 1;
    EXPECT_FALSE(movable(list)) << at;
  }
}

TEST_F(MovableCopies, WhatPointsIntoItselfMayNot) {
  const std::array list = {word(3), word(20)};
  stack_[4] = address(5);  // a string that keeps its text within
  EXPECT_FALSE(movable(list));
  stack_[4] = address(25);  // another one's address is of the function around them
  EXPECT_TRUE(movable(list));
}

TEST_F(MovableCopies, WhatLiesBelowOrFarBeyondIsNotTheirs) {
  const std::array list = {word(20), word(3)};
  for (const std::size_t at : {0u, 2u, 20u + 32u, 79u}) {
    stack_ = {};
    stack_[at] = kHeap;
    EXPECT_TRUE(movable(list)) << at;
  }
}

TEST_F(MovableCopies, TheListIsNoPartOfACopy) {
  stack_[12] = address(10);
  stack_[13] = address(11);
  stack_[14] = kHeap;  // as if a further copy were on the heap
  EXPECT_TRUE(movable({reinterpret_cast<void* const*>(&stack_[12]), 3}));
}

TEST_F(MovableCopies, CopiesElsewhereAndSizesDoNotMatter) {
  std::uintptr_t elsewhere = kHeap;
  const std::array list = {static_cast<void*>(&elsewhere), reinterpret_cast<void*>(3), word(79)};
  EXPECT_TRUE(movable(list));
  stack_[79] = kHeap;
  EXPECT_FALSE(movable(list));
}

TEST_F(MovableCopies, AnAddressIsAlignedThoughACopyIsNot) {
  const std::array list = {static_cast<void*>(reinterpret_cast<std::byte*>(word(3)) + 4)};
  stack_[3] = kHeap;  // begins below the copy
  EXPECT_TRUE(movable(list));
  stack_[4] = kHeap;
  EXPECT_FALSE(movable(list));
}

}  // namespace
}  // namespace amasia::omp
