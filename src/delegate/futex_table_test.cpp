// SPDX-License-Identifier: Apache-2.0
#include "delegate/futex_table.hpp"

#include <random>

#include <gtest/gtest.h>

namespace amasia::delegate {
namespace {

constexpr std::uint32_t kAny = 0xffffffff;
FutexWaiter waiter(std::uint16_t node, std::uint64_t ticket, std::uint32_t bitset = kAny) {
  return {NodeId{node}, ticket, bitset};
}

TEST(FutexTable, WakesThoseThatWaitedLongestFirst) {
  FutexTable table;
  table.add(64, waiter(1, 10));
  table.add(64, waiter(0, 11));
  table.add(64, waiter(2, 12));
  EXPECT_EQ(table.take(64, 2, kAny), (std::vector{waiter(1, 10), waiter(0, 11)}));
  EXPECT_EQ(table.take(64, 2, kAny), (std::vector{waiter(2, 12)}));
  EXPECT_EQ(table.words(), 0u);
}

TEST(FutexTable, PassesOverWaitersWhoseBitsetDoesNotMeet) {
  FutexTable table;
  table.add(64, waiter(1, 10, 0b01));
  table.add(64, waiter(1, 11, 0b10));
  EXPECT_EQ(table.take(64, 9, 0b10), (std::vector{waiter(1, 11, 0b10)}));
  EXPECT_EQ(table.take(64, 9, 0b10).size(), 0u);
  EXPECT_EQ(table.take(64, 9, kAny).size(), 1u);
}

TEST(FutexTable, AWaiterIsEitherTakenOrRemoved) {
  FutexTable table;
  table.add(64, waiter(1, 10));
  EXPECT_FALSE(table.remove(64, NodeId{2}, 10));
  EXPECT_FALSE(table.remove(68, NodeId{1}, 10));
  EXPECT_TRUE(table.remove(64, NodeId{1}, 10));
  EXPECT_FALSE(table.remove(64, NodeId{1}, 10));
  EXPECT_EQ(table.take(64, 1, kAny).size(), 0u);
}

// Against a plain list in order of arrival.
TEST(FutexTable, AgreesWithAListUnderRandomOperations) {
  std::mt19937 random(7);
  FutexTable table;
  std::vector<std::pair<std::uint64_t, FutexWaiter>> model;
  for (std::uint64_t ticket = 0; ticket < 20000; ++ticket) {
    const std::uint64_t address = 4 * (random() % 5);
    if (random() % 2 == 0) {
      const FutexWaiter added = waiter(random() % 3, ticket, 1u << (random() % 3));
      table.add(address, added);
      model.emplace_back(address, added);
      continue;
    }
    const std::uint32_t count = random() % 3, bitset = random() % 8;
    std::vector<FutexWaiter> expected;
    for (auto it = model.begin(); it != model.end() && expected.size() < count;) {
      const bool meets = it->first == address && (it->second.bitset & bitset) != 0;
      if (meets) expected.push_back(it->second);
      it = meets ? model.erase(it) : it + 1;
    }
    ASSERT_EQ(table.take(address, count, bitset), expected) << "at step " << ticket;
  }
}

}  // namespace
}  // namespace amasia::delegate
