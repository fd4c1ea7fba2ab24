// SPDX-License-Identifier: Apache-2.0
#include "omp/region/gathering.hpp"

#include <gtest/gtest.h>

#include <array>

namespace amasia::omp {
namespace {

using Action = Gathering::Action;

template <std::size_t kRegions>
struct Program {
  Gathering gathering;
  std::array<Gathering::Region, kRegions> regions;

  Program() {
    for (const Gathering::Region& region : regions) gathering.add(region);
  }
  Action share(std::size_t region) { return gathering.on_run(regions[region], true); }
  Action stay(std::size_t region) { return gathering.on_run(regions[region], false); }
};

TEST(Gathering, ARegionThatHasAlwaysStayedGathersNothing) {
  Program<1> program;
  for (int run = 0; run < 3; ++run) EXPECT_EQ(program.stay(0), Action::kNone);
}

TEST(Gathering, ARegionThatWasSharedGathersOnceWhenItStays) {
  Program<1> program;
  EXPECT_EQ(program.share(0), Action::kNone);
  EXPECT_EQ(program.share(0), Action::kNone);
  EXPECT_EQ(program.stay(0), Action::kGather);
  EXPECT_EQ(program.stay(0), Action::kNone);
}

TEST(Gathering, TryingAgainStopsItAndGathersAgain) {
  Program<1> program;
  program.share(0);
  program.stay(0);
  EXPECT_EQ(program.share(0), Action::kStop);
  EXPECT_EQ(program.share(0), Action::kNone);
  EXPECT_EQ(program.stay(0), Action::kGather);
}

TEST(Gathering, TheLastOfSeveralRegionsGathers) {
  Program<3> program;
  for (std::size_t region = 0; region < 3; ++region) program.share(region);
  EXPECT_EQ(program.stay(0), Action::kNone);  // the others have their second execution before them
  EXPECT_EQ(program.share(1), Action::kNone);
  EXPECT_EQ(program.stay(2), Action::kNone);
  EXPECT_EQ(program.stay(0), Action::kNone);
  EXPECT_EQ(program.stay(1), Action::kGather);
  EXPECT_EQ(program.stay(2), Action::kNone);
}

TEST(Gathering, ARegionThatIsSharedForGoodKeepsItsData) {
  Program<2> program;
  program.share(0);
  program.share(1);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(program.share(0), Action::kNone);
    for (int run = 0; run < 100; ++run) EXPECT_EQ(program.stay(1), Action::kNone);
  }
}

TEST(Gathering, WhatRanOnceBeforeDoesNotCount) {
  Program<2> program;
  program.share(0);  // fills the arrays
  program.share(1);
  program.share(1);
  EXPECT_EQ(program.stay(1), Action::kGather);
}

}  // namespace
}  // namespace amasia::omp
