// SPDX-License-Identifier: Apache-2.0
// Against a model with real bytes: whoever reads sees what was written last.
#include "devices/client/residency.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace amasia::devices {
namespace {

constexpr Bytes kSize = 40;

Range random_range(std::mt19937& random) {
  const Bytes begin = random() % kSize;
  return {begin, begin + 1 + random() % (kSize - begin)};
}

TEST(IntervalSet, AgreesWithASetOfBytes) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    IntervalSet intervals;
    std::set<Bytes> bytes;
    for (int step = 0; step < 30; ++step) {
      const Range range = random_range(random);
      const bool add = random() % 2 == 0;
      add ? intervals.add(range) : intervals.remove(range);
      for (Bytes at = range.begin; at < range.end; ++at) {
        if (add) bytes.insert(at);
        if (!add) bytes.erase(at);
      }
      const Range asked = random_range(random);
      std::set<Bytes> common, missing;
      for (const Range& part : intervals.common(asked)) {
        for (Bytes at = part.begin; at < part.end; ++at) ASSERT_TRUE(common.insert(at).second);
      }
      for (const Range& part : intervals.missing(asked)) {
        for (Bytes at = part.begin; at < part.end; ++at) ASSERT_TRUE(missing.insert(at).second);
      }
      for (Bytes at = asked.begin; at < asked.end; ++at) {
        ASSERT_EQ(common.contains(at), bytes.contains(at));
        ASSERT_EQ(missing.contains(at), !bytes.contains(at));
      }
      ASSERT_EQ(common.size() + missing.size(), asked.size());
      ASSERT_EQ(intervals.covers(asked), missing.empty());
      ASSERT_EQ(intervals.empty(), bytes.empty());
    }
  }
}

TEST(Residency, ReadersSeeWhatWasWrittenLast) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    Residency residency(kSize);
    std::map<OwnDevice, std::vector<int>> memory;
    memory[kHost].assign(kSize, 0);
    std::vector<int> newest(kSize, 0);
    const auto carry_out = [&](const std::vector<Move>& moves) {
      for (const Move& move : moves) {
        ASSERT_TRUE((move.from == kHost) != (move.to == kHost));
        if (!memory.contains(move.to)) memory[move.to].assign(kSize, -1);
        ASSERT_TRUE(memory.contains(move.from));
        for (Bytes at = move.range.begin; at < move.range.end; ++at) {
          memory[move.to][at] = memory[move.from][at];
        }
      }
    };
    for (int step = 1; step < 60; ++step) {
      const OwnDevice choice = static_cast<OwnDevice>(random() % 4);
      const OwnDevice where = choice == 3 ? kHost : choice;
      const Range range = random_range(random);
      switch (random() % 4) {
        case 0:
        case 1: {
          const bool valid = residency.is_valid(where, range);
          const auto moves = residency.bring(where, range);
          ASSERT_EQ(valid, moves.empty());
          carry_out(moves);
          if (!memory.contains(where)) memory[where].assign(kSize, -1);
          for (Bytes at = range.begin; at < range.end; ++at) {
            ASSERT_EQ(memory[where][at], newest[at]);
          }
          break;
        }
        case 2:
          if (!memory.contains(where)) memory[where].assign(kSize, -1);
          residency.written(where, range);
          for (Bytes at = range.begin; at < range.end; ++at) {
            memory[where][at] = newest[at] = step;
          }
          break;
        default:
          if (where == kHost) break;
          carry_out(residency.drop(where));
          memory.erase(where);
          ASSERT_FALSE(residency.has_copy(where));
      }
    }
    carry_out(residency.bring(kHost, {0, kSize}));
    EXPECT_EQ(memory[kHost], newest);
  }
}

TEST(Residency, WhatIsForgottenCountsAsTheHosts) {
  Residency residency(kSize);
  residency.written(1, {0, 20});
  residency.bring(2, {0, 10});  // over the host
  residency.written(1, {5, 15});
  residency.forget(1);
  EXPECT_TRUE(residency.is_valid(kHost, {0, kSize}));
  EXPECT_TRUE(residency.is_valid(2, {0, 5}));
  EXPECT_FALSE(residency.is_valid(2, {5, 10}));
}

}  // namespace
}  // namespace amasia::devices
