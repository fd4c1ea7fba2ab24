// SPDX-License-Identifier: Apache-2.0
#include "os/turn_length.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace amasia::os {
namespace {

constexpr Nanos kSecond = base::kSecond;

// A program that passes so many barriers a second with long and with short turns.
struct Program {
  double with_long, with_short;
};

// The part of `time` in which its turns are short, from `begin` on.
double short_part(const Program& program, Nanos begin, Nanos time) {
  double passed = 4.29e9;  // wraps soon
  Nanos now = 0, in_short = 0;
  const auto count = [&] { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(passed)); };
  TurnLength turns(now, count());
  while (now < begin + time) {
    const Nanos lasts = turns.lasts();
    const double rate = turns.is_short() ? program.with_short : program.with_long;
    passed += rate * static_cast<double>(lasts) / static_cast<double>(kSecond);
    const Nanos after = std::max(now, begin);
    now += lasts;
    if (turns.is_short()) in_short += std::max<Nanos>(0, now - after);
    turns.step(now, count());
  }
  return static_cast<double>(in_short) / static_cast<double>(now - begin);
}

TEST(TurnLength, ProgramsThatComputeHaveLongTurns) {
  EXPECT_LT(short_part({550, 500}, 0, 10 * kSecond), 0.05);
  EXPECT_LT(short_part({500, 550}, 0, 10 * kSecond), 0.05);
}

TEST(TurnLength, ProgramsWhoseThreadsSpinHaveShortOnes) {
  EXPECT_GT(short_part({100, 400}, 0, 10 * kSecond), 0.9);
  EXPECT_GT(short_part({0, 400}, 0, 10 * kSecond), 0.9);
}

TEST(TurnLength, FewBarriersAreWaitedForLonger) {
  EXPECT_LT(short_part({8, 8}, 2 * kSecond, 60 * kSecond), 0.06);
  EXPECT_GT(short_part({8, 24}, 2 * kSecond, 60 * kSecond), 0.9);
}

TEST(TurnLength, WhoPassesNoneHasShortOnesAfterSeconds) {
  EXPECT_GT(short_part({0, 0}, 4 * kSecond, 60 * kSecond), 0.9);
}

TEST(TurnLength, WhatWasKeptIsTriedAgain) {
  // Two programs one after the other, as phases of one.
  Nanos now = 0;
  std::uint32_t passed = 0;
  TurnLength turns(now, passed);
  const auto run = [&](const Program& program, Nanos until) {
    while (now < until) {
      const Nanos lasts = turns.lasts();
      const double rate = turns.is_short() ? program.with_short : program.with_long;
      passed += static_cast<std::uint32_t>(rate * static_cast<double>(lasts / kSecond) +
                                           rate * static_cast<double>(lasts % kSecond) / 1e9);
      now += lasts;
      turns.step(now, passed);
    }
  };
  run({500, 500}, 5 * kSecond);
  EXPECT_FALSE(turns.is_short() && turns.lasts() > kSecond / 2);
  run({100, 500}, 10 * kSecond);
  while (turns.lasts() < kSecond / 2) run({100, 500}, now + 1);
  EXPECT_TRUE(turns.is_short());
}

}  // namespace
}  // namespace amasia::os
