// SPDX-License-Identifier: Apache-2.0
#include "loops/common_sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace amasia::loops {
namespace {

constexpr Nanos kMs = base::kMillisecond;
using State = CommonSharing::State;

// A program of rounds in which each region runs once.
struct Program {
  struct Region {
    CommonSharing::Member member;
    double promise = 11 * kMs;  // 0: nothing is known
    Nanos apart = 20 * kMs;
    Nanos together = 12 * kMs;  // while those that promise something are shared
    Nanos moving = 24 * kMs;    // the same while data move there, for two rounds
    bool settled = true;
    int held_runs = 0;
  };
  std::vector<Region> regions = std::vector<Region>(4);
  double cost = 4 * kMs;  // of each region's first tries
  double allowance = std::numeric_limits<double>::infinity();
  Nanos serial_stall = 0;  // between rounds while they are shared
  CommonSharing sharing{};
  Nanos time = 0;

  void round() {
    for (Region& region : regions) {
      const bool shared = sharing.state() != State::kApart;
      if (!shared) region.held_runs = 0;
      const bool moves = shared && region.held_runs++ < 2;
      const Nanos elapsed = moves ? region.moving : shared ? region.together : region.apart;
      time += elapsed;
      sharing.note(region.member, elapsed, {region.settled, region.promise, cost}, allowance);
    }
    if (sharing.state() == State::kApart || serial_stall == 0) return;
    time += serial_stall;
    sharing.charge(serial_stall);
  }
  double of_rounds(int rounds) {
    time = 0;
    for (int i = 0; i < rounds; ++i) round();
    return static_cast<double>(time) / rounds;
  }
  static constexpr double kApart = 4 * 20 * kMs, kTogether = 4 * 12 * kMs;
};

TEST(CommonSharing, KeepsTogetherWhatIsQuickerSo) {
  Program program;
  program.of_rounds(100);
  EXPECT_EQ(program.sharing.state(), State::kTogether);
  for (const auto& region : program.regions) EXPECT_TRUE(program.sharing.holds(region.member));
  EXPECT_EQ(program.of_rounds(10'000), Program::kTogether);
}

TEST(CommonSharing, WhatIsSlowerSoCostsLittle) {
  for (const Nanos together : {19 * kMs, 25 * kMs, 200 * kMs}) {
    Program program;
    for (auto& region : program.regions) region.together = region.moving = together;
    program.cost = static_cast<double>(std::max(kMs, together - 20 * kMs));
    double worst = 0;
    for (int round = 0; round < 2000; ++round) {
      program.round();
      const double kept = Program::kApart * (round + 1);
      worst = std::max(worst, (static_cast<double>(program.time) - kept) / kept);
    }
    // A fiftieth of the time so far, and the run in which that is noticed.
    EXPECT_LT(worst, 0.05) << together / kMs << " ms";
    EXPECT_EQ(program.sharing.state(), State::kApart);
  }
}

TEST(CommonSharing, AShortProgramIsNotTried) {
  Program program;
  program.cost = 20 * kMs;  // two rounds that go wrong cost more than a fiftieth of 95
  EXPECT_EQ(program.of_rounds(95), Program::kApart);
  program.of_rounds(10);
  EXPECT_NE(program.sharing.state(), State::kApart);
}

TEST(CommonSharing, WhatMayNotBeLostIsNotTried) {
  Program program;
  program.allowance = 10 * kMs;
  EXPECT_EQ(program.of_rounds(1000), Program::kApart);
}

TEST(CommonSharing, WhereLittleCanBeSavedNothingIsTried) {
  Program program;
  for (auto& region : program.regions) region.promise = 17 * kMs;
  EXPECT_EQ(program.of_rounds(1000), Program::kApart);
}

TEST(CommonSharing, WhatIsUnsettledDoesNotCount) {
  Program program;
  for (auto& region : program.regions) region.settled = false;
  EXPECT_EQ(program.of_rounds(1000), Program::kApart);
}

TEST(CommonSharing, ARegionThatPromisesNothingStaysButCounts) {
  Program program;
  program.regions[0].promise = 0;
  program.regions[0].together = 80 * kMs;  // it waits for what others have spread
  program.of_rounds(100);
  EXPECT_EQ(program.sharing.state(), State::kApart);
  program.regions[0].together = 21 * kMs;
  program.of_rounds(10'000);
  EXPECT_EQ(program.sharing.state(), State::kTogether);
  EXPECT_FALSE(program.sharing.holds(program.regions[0].member));
  EXPECT_TRUE(program.sharing.holds(program.regions[1].member));
}

TEST(CommonSharing, SerialCodeThatWaitsForDataCounts) {
  Program program;
  program.serial_stall = 60 * kMs;
  program.of_rounds(100);
  EXPECT_EQ(program.sharing.state(), State::kApart);
}

TEST(CommonSharing, ANewRegionIsNotHeld) {
  Program program;
  program.of_rounds(100);
  ASSERT_EQ(program.sharing.state(), State::kTogether);
  CommonSharing::Member later;
  for (int run = 0; run < 100; ++run) {
    EXPECT_FALSE(program.sharing.holds(later));
    program.sharing.note(later, 30 * kMs, {true, 10.0 * kMs, 0}, program.allowance);
  }
}

TEST(CommonSharing, WhatNoLongerPaysIsLeft) {
  Program program;
  program.of_rounds(100);
  ASSERT_EQ(program.sharing.state(), State::kTogether);
  for (auto& region : program.regions) region.together = 30 * kMs;
  program.of_rounds(20);
  EXPECT_EQ(program.sharing.state(), State::kApart);
}

// The trial ends although a region runs no more.
TEST(CommonSharing, ARegionThatRunsNoMoreIsNotWaitedFor) {
  Program program;
  while (program.sharing.state() == State::kApart) program.round();
  program.regions.pop_back();
  program.of_rounds(100);
  EXPECT_EQ(program.sharing.state(), State::kTogether);
}

std::array<RegionPart, 2> parts(Nanos first, Nanos second) {
  std::array<RegionPart, 2> nodes{};
  nodes[0] = {.threads = 1, .work = 0.5, .busy = first};
  nodes[1] = {.threads = 1, .work = 0.5, .busy = second};
  return nodes;
}

TEST(CommonSharing, PowersAreCorrectedWhereNodesAreClearlyUnlike) {
  std::array<double, 2> powers{1, 1};
  CommonSharing().correct_powers(powers);
  EXPECT_EQ(powers, (std::array<double, 2>{1, 1}));
  CommonSharing alike;
  alike.note_speeds(parts(10 * kMs, 13 * kMs), 20 * kMs);
  alike.correct_powers(powers);
  EXPECT_EQ(powers, (std::array<double, 2>{1, 1}));
  CommonSharing unlike;
  unlike.note_speeds(parts(10 * kMs, 30 * kMs), 20 * kMs);
  unlike.note_speeds(parts(0, 30 * kMs), 20 * kMs);  // says nothing
  unlike.correct_powers(powers);
  EXPECT_DOUBLE_EQ(powers[0] / powers[1], 3);
  std::array<double, 2> without{1, 0};
  unlike.correct_powers(without);
  EXPECT_EQ(without[1], 0);
}

}  // namespace
}  // namespace amasia::loops
