// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/loop_book.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace amasia::omp {
namespace {

TEST(LoopBook, TellsLoopsApartByTheirPlaceInTheOrderMet) {
  char places[3];
  LoopBook book;
  for (int region = 0; region < 5; ++region) {
    for (char& place : places) {
      book.note(&place, {.form = LoopForm::kPooled,
                         .asked = loops::ScheduleKind::kDynamic,
                         .carried_out = loops::ScheduleKind::kHetProbeI,
                         .chunk = 7,
                         .iterations = 10u + static_cast<std::uint64_t>(region)});
    }
  }
  const auto entries = book.entries();
  ASSERT_EQ(entries.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].code, &places[i]);
    EXPECT_EQ(entries[i].runs, 5u);
    EXPECT_EQ(entries[i].iterations, 60u);
    EXPECT_EQ(entries[i].last.iterations, 14u);
    EXPECT_EQ(entries[i].last.chunk, 7u);
    EXPECT_EQ(entries[i].last.form, LoopForm::kPooled);
    EXPECT_EQ(entries[i].last.asked, loops::ScheduleKind::kDynamic);
    EXPECT_EQ(entries[i].last.carried_out, loops::ScheduleKind::kHetProbeI);
  }
}

// In any order, more of them than there are lines: each of the first ones has its own sums.
TEST(LoopBook, KeepsTheFirstLoopsAndCountsTheRunsOfOthers) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::array<char, 100> places{};
    LoopBook book;
    std::map<const void*, std::uint64_t> runs, iterations;
    std::uint64_t others = 0;
    for (int i = 0; i < 2000; ++i) {
      const void* const place = &places[random() % places.size()];
      const std::uint64_t count = random() % 1000;
      book.note(place, {.iterations = count});
      if (runs.count(place) == 0 && runs.size() == LoopBook::kMostLoops) {
        ++others;
        continue;
      }
      ++runs[place];
      iterations[place] += count;
    }
    const auto entries = book.entries();
    ASSERT_EQ(entries.size(), LoopBook::kMostLoops);
    for (const auto& entry : entries) {
      EXPECT_EQ(entry.runs, runs.at(entry.code)) << "seed " << seed;
      EXPECT_EQ(entry.iterations, iterations.at(entry.code)) << "seed " << seed;
    }
    EXPECT_EQ(book.left_out(), others);
    EXPECT_GT(others, 0u);
  }
}

}  // namespace
}  // namespace amasia::omp
