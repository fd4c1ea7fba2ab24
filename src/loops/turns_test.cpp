// SPDX-License-Identifier: Apache-2.0
#include "loops/turns.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace amasia::loops {
namespace {

// Follows a loop from thread to thread: every iteration comes once and in order, and thread_after()
// names the thread whose share is next, whatever was asked for.
TEST(Turns, LeadThroughEveryIterationInOrder) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 3000; ++run) {
    const ScheduleRequest asked{static_cast<ScheduleKind>(random() % kScheduleKinds),
                                random() % 7};
    const ScheduleRequest schedule = in_turn(asked);
    const auto threads = static_cast<std::uint32_t>(1 + random() % 9);
    const std::uint64_t count = random() % 60;
    std::vector<std::uint64_t> round(threads);
    std::uint32_t thread = 0;
    std::uint64_t at = 0;
    while (at < count) {
      const auto range = schedule_of(schedule.kind)
                             .share(count, schedule.chunk, thread, threads, round[thread]);
      ASSERT_TRUE(range.has_value() && range->begin == at && !range->empty());
      at = range->end;
      if (at == count) break;
      const std::uint32_t after =
          thread_after(schedule, count, at, thread, round[thread], threads);
      ++round[thread];
      thread = after;
    }
  }
}

TEST(Turns, KeepWhatTheProgramFixed) {
  EXPECT_EQ(in_turn({ScheduleKind::kStatic, 0}).chunk, 0u);
  EXPECT_EQ(in_turn({ScheduleKind::kStatic, 5}).chunk, 5u);
  EXPECT_EQ(in_turn({ScheduleKind::kDynamic, 5}).chunk, 5u);
  EXPECT_EQ(in_turn({ScheduleKind::kGuided, 0}).chunk, 1u);
}

TEST(Turns, PlacesOfANestAreThoseOfItsSerialExecution) {
  const std::vector<Space> nest = {space_through<std::int64_t>(5, -4, -3),
                                   space_through<std::int64_t>(-2, 2, 2)};
  std::uint64_t place = 0;
  for (std::int64_t i = 5; i >= -4; i -= 3) {
    for (std::int64_t j = -2; j <= 2; j += 2) {
      EXPECT_EQ(row_place(nest, std::vector<std::int64_t>{i, j}), place++);
    }
  }
  EXPECT_EQ(row_length(nest), place);
  for (const auto& outside : {std::vector<std::int64_t>{8, 0}, {-7, 0}, {5, -4}, {5, 4}}) {
    EXPECT_FALSE(row_place(nest, outside).has_value());
  }
  const std::vector<Space> large(3, Space{0, 1, 1ull << 32});
  EXPECT_FALSE(row_length(large).has_value());
}

}  // namespace
}  // namespace amasia::loops
