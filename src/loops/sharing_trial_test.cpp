// SPDX-License-Identifier: Apache-2.0
// What a region takes alone is tried where predictions do not tell.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "loops/shared_halves.hpp"
#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

using Phase = SharingModel::Phase;

void observe_until_trial(SharingModel& model) {
  while (model.phase() != Phase::kTrial) {
    ASSERT_TRUE(model.shares());
    observe_halves(model, 1'000'000, 900'000, 900'000);  // 2 ms alone, 1.9 shared
  }
}

// Regions that are still shared have its data: it waits for them, and will not when they stay too.
TEST(SharingModel, WhatOthersTookIsNotHeldAgainstStaying) {
  SharingModel model(std::vector<double>{1, 1});
  observe_until_trial(model);
  for (int i = 0; i < 5 && !model.shares(); ++i) model.observe_alone(5'800'000, 4'000'000);
  EXPECT_EQ(model.phase(), Phase::kAlone);
}

TEST(SharingModel, ALongTrialIsRepeated) {
  SharingModel model(std::vector<double>{1, 1});
  observe_until_trial(model);
  for (const Nanos took : {9'000'000, 2'700'000, 1'600'000, 1'600'000, 1'600'000}) {
    EXPECT_EQ(model.phase(), Phase::kTrial) << took;
    model.observe_alone(took, 0);
    if (model.phase() != Phase::kTrial) break;
  }
  EXPECT_EQ(model.phase(), Phase::kAlone) << "1.875 ms on average";
}

// Another region that is shared takes the data away before each execution of the trial.
TEST(SharingModel, ATrialToWhichTheDataNeverComeBackSaysNothing) {
  SharingModel model(std::vector<double>{1, 1});
  observe_until_trial(model);
  const double alone = model.findings().alone;
  while (model.phase() == Phase::kTrial) model.observe_alone(6'000'000, 2'000'000);
  EXPECT_EQ(model.phase(), Phase::kShared);
  EXPECT_EQ(model.findings().alone, alone);
}

// The other node's pages come from this one, whose only core computes the longer for it: by that
// it would take 3 ms alone.
TEST(SharingModel, TriesAloneWhatIsLongAsItServesOthers) {
  SharingModel model(std::vector<double>{1, 1});
  const auto observe = [&](Nanos serving) {
    const std::array<RegionPart, 2> parts{
        RegionPart{.threads = 1, .work = 0.6, .busy = 1'100'000 + serving, .faults = 1},
        RegionPart{.threads = 1, .work = 0.4, .busy = 800'000, .stall = serving, .faults = 1}};
    model.observe_shared(parts, 1'130'000 + serving, false);
  };
  for (int run = 0; run < 4; ++run) observe(0);
  ASSERT_EQ(model.phase(), Phase::kShared);
  for (int run = 0; run < 20 && model.phase() == Phase::kShared; ++run) observe(800'000);
  ASSERT_EQ(model.phase(), Phase::kTrial);
  for (int run = 0; run < 5 && !model.shares(); ++run) model.observe_alone(1'300'000, 0);
  EXPECT_EQ(model.phase(), Phase::kAlone);
}

// One execution of a loop whose iterations grow, so that the origin has the lighter half.
void observe_light_half(SharingModel& model, Nanos stall_0, Nanos stall_1) {
  const std::array<RegionPart, 2> parts{
      RegionPart{.threads = 1, .work = 0.5, .busy = 1'300'000, .stall = stall_0, .faults = 1},
      RegionPart{.threads = 1, .work = 0.5, .busy = 2'700'000, .stall = stall_1, .faults = 1}};
  const Nanos longest = std::max(1'300'000 + stall_0, 2'700'000 + stall_1);
  model.observe_shared(parts, longest + 30'000, false);
}

// Tried alone it takes what it takes shared, but less data came each time, and none will: what is
// lost if they do nevertheless is seen.
TEST(SharingModel, WhatTookLessEachTimeIsGivenTheTimeToPay) {
  for (const bool pays : {true, false}) {
    SharingModel model(std::vector<double>{1, 1});
    observe_light_half(model, 440'000, 16'200'000);
    observe_light_half(model, 330'000, 2'250'000);
    observe_light_half(model, 2'740'000, 770'000);
    observe_light_half(model, 2'300'000, 600'000);
    observe_light_half(model, 1'900'000, 400'000);
    ASSERT_EQ(model.phase(), Phase::kTrial);
    for (int run = 0; run < 5 && !model.shares(); ++run) model.observe_alone(3'100'000, 0);
    ASSERT_EQ(model.phase(), Phase::kShared);
    const Nanos stall = pays ? 0 : 2'740'000;
    for (int run = 0; run < 100 && model.shares(); ++run) observe_light_half(model, stall, stall);
    EXPECT_EQ(model.phase(), pays ? Phase::kShared : Phase::kAlone);
  }
}

// Nor is it repeated where it takes what all parts had said, and not what the origin's light half
// had.
TEST(SharingModel, ATrialThatAllPartsHadForetoldIsNotRepeated) {
  SharingModel model(std::vector<double>{1, 1});
  observe_light_half(model, 1'340'000, 3'590'000);
  observe_light_half(model, 1'340'000, 3'590'000);
  ASSERT_EQ(model.phase(), Phase::kTrial);
  model.observe_alone(8'000'000, 4'000'000);
  ASSERT_EQ(model.phase(), Phase::kTrial) << "in which the data come back";
  model.observe_alone(4'150'000, 0);
  EXPECT_EQ(model.phase(), Phase::kShared);
}

// Twice the origin's half is less than sharing costs, all that was computed is not: it is tried.
TEST(SharingModel, WhatAllContradictIsTriedBeforeItGoesAlone) {
  SharingModel model(std::vector<double>{1, 1});
  for (int run = 0; run < 4; ++run) observe_light_half(model, 0, 0);
  ASSERT_EQ(model.phase(), Phase::kShared);
  for (int run = 0; run < 200 && model.phase() == Phase::kShared; ++run) {
    observe_light_half(model, 0, 0);
    model.charge(1'200'000);  // from then on serial code wants some of it back
  }
  ASSERT_EQ(model.phase(), Phase::kTrial);
  while (!model.shares()) model.observe_alone(4'000'000, 0);
  EXPECT_EQ(model.phase(), Phase::kShared);
}

// What it takes by now is held against the trial, not an average in which it took less before.
TEST(SharingModel, WhatSuddenlyWaitsIsHeldAgainstTheTrial) {
  SharingModel model(std::vector<double>{1, 1});
  for (int run = 0; run < 4; ++run) observe_light_half(model, 0, 0);
  ASSERT_EQ(model.phase(), Phase::kShared);
  for (int run = 0; run < 4 && model.phase() == Phase::kShared; ++run) {
    observe_light_half(model, 3'000'000, 3'000'000);
  }
  ASSERT_EQ(model.phase(), Phase::kTrial);
  while (model.phase() == Phase::kTrial) model.observe_alone(4'000'000, 0);
  EXPECT_EQ(model.phase(), Phase::kAlone);
}

}  // namespace
}  // namespace amasia::loops
