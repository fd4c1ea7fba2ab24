// SPDX-License-Identifier: Apache-2.0
#include "loops/common_trial.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace amasia::loops {
namespace {

constexpr Nanos kMs = base::kMillisecond;

// A program of rounds in which each region runs once.
struct Program {
  Nanos shared = 30 * kMs, stall = 10 * kMs;  // a run while the regions are apart
  Nanos together = 20 * kMs;                  // on the origin with all others
  std::vector<CommonTrial::Member> regions = std::vector<CommonTrial::Member>(4);
  CommonTrial trial{};
  Nanos time = 0;

  void round() {
    for (CommonTrial::Member& region : regions) {
      const bool held = trial.holds(region);
      const Nanos elapsed = held ? together : shared;
      time += elapsed;
      trial.note(region, !held, true, elapsed, held ? 0 : stall);
    }
  }
  Nanos of_rounds(int rounds) {
    time = 0;
    for (int i = 0; i < rounds; ++i) round();
    return time / rounds;
  }
};

TEST(CommonTrial, KeepsTogetherWhatIsQuickerSo) {
  Program program;
  program.of_rounds(20);
  EXPECT_EQ(program.trial.state(), CommonTrial::State::kTogether);
  EXPECT_EQ(program.of_rounds(100), 4 * program.together);
  // To ask again costs a hundredth.
  EXPECT_LT(program.of_rounds(10'000), 4.1 * static_cast<double>(program.together));
}

TEST(CommonTrial, WhatIsQuickerApartIsTriedSeldom) {
  Program program;
  program.together = 40 * kMs;
  program.of_rounds(20);
  EXPECT_EQ(program.trial.state(), CommonTrial::State::kApart);
  EXPECT_LT(program.of_rounds(1000), 4.1 * static_cast<double>(program.shared));
}

TEST(CommonTrial, WhoHardlyWaitsIsNotTried) {
  Program program;
  program.stall = 3 * kMs;
  EXPECT_EQ(program.of_rounds(1000), 4 * program.shared);
}

TEST(CommonTrial, OneRegionDecidesForItself) {
  Program program;
  program.regions.resize(1);
  EXPECT_EQ(program.of_rounds(1000), program.shared);
}

TEST(CommonTrial, ANewRegionIsNotHeld) {
  Program program;
  program.of_rounds(20);
  ASSERT_EQ(program.trial.state(), CommonTrial::State::kTogether);
  CommonTrial::Member later;
  for (int run = 0; run < 100; ++run) {
    EXPECT_FALSE(program.trial.holds(later));
    program.trial.note(later, true, true, 30 * kMs, 10 * kMs);
  }
  EXPECT_TRUE(program.trial.holds(program.regions[0]));
}

// The trial ends although a region that was shared runs no more.
TEST(CommonTrial, ARegionThatRunsNoMoreIsNotWaitedFor) {
  Program program;
  while (program.trial.state() == CommonTrial::State::kApart) program.round();
  program.regions.pop_back();
  program.of_rounds(40);
  EXPECT_EQ(program.trial.state(), CommonTrial::State::kTogether);
}

// What has not run since the trial before is not told from a new one.
TEST(CommonTrial, WhatRanLongAgoIsNotHeld) {
  Program program;
  program.together = 40 * kMs;
  const auto run_while = [&program](CommonTrial::State state) {
    while (program.trial.state() == state) program.round();
  };
  run_while(CommonTrial::State::kApart);
  const CommonTrial::Member former = program.regions.back();
  EXPECT_TRUE(program.trial.holds(former));
  program.regions.pop_back();
  run_while(CommonTrial::State::kTrial);
  run_while(CommonTrial::State::kApart);
  EXPECT_TRUE(program.trial.holds(program.regions[0]));
  EXPECT_FALSE(program.trial.holds(former));
}

// A trial in which nothing ran twice says nothing.
TEST(CommonTrial, ATrialWithoutSecondRunsIsInVain) {
  Program program;
  while (program.trial.state() == CommonTrial::State::kApart) program.round();
  CommonTrial::Member& region = program.regions[0];
  program.trial.note(region, false, true, base::kSecond * 100, 0);
  EXPECT_EQ(program.trial.state(), CommonTrial::State::kApart);
}

// What is tried alone meanwhile, or has not been shared yet, tells nothing.
TEST(CommonTrial, WhatIsUnsettledDoesNotCount) {
  Program program;
  for (int round = 0; round < 100; ++round) {
    for (CommonTrial::Member& region : program.regions) {
      program.trial.note(region, true, false, program.shared, program.stall);
    }
  }
  EXPECT_EQ(program.trial.state(), CommonTrial::State::kApart);
}

}  // namespace
}  // namespace amasia::loops
