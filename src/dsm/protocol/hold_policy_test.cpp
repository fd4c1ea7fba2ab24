// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/hold_policy.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm::protocol {
namespace {

constexpr HoldSettings kSettings{};
const Nanos kTurn = usual_turn(2);

// Node 0 of two, in its own turn unless said otherwise.
HoldInput input_at(Nanos since_install, Nanos cpu_used) {
  HoldInput input;
  input.installed_at = 10 * kTurn;
  input.now = input.installed_at + since_install;
  input.cpu_used = cpu_used;
  input.self = NodeId{0};
  input.turn = TurnSchedule(2).at(input.now);
  input.exclusive = true;
  return input;
}

HoldInput in_turn_of_other(HoldInput input) {
  input.now += kTurn;
  input.installed_at += kTurn;
  input.turn = TurnSchedule(2).at(input.now);
  return input;
}

TEST(HoldPolicy, AFreshPageIsKeptUntilItsThreadHasRun) {
  HoldRecord record = begin_hold(kSettings);
  const HoldDecision early = decide(record, in_turn_of_other(input_at(500'000, 1'000)), kSettings);
  EXPECT_EQ(early.action, HoldAction::kRecheck);
  EXPECT_GE(early.after, kSettings.recheck);
  EXPECT_EQ(decide(record, in_turn_of_other(input_at(30'000, 2'000)), kSettings).action,
            HoldAction::kRelease);
}

TEST(HoldPolicy, AThreadThatNeverRunsDoesNotKeepThePageForEver) {
  HoldRecord record = begin_hold(kSettings);
  EXPECT_EQ(decide(record, in_turn_of_other(input_at(kSettings.floor_limit, 0)), kSettings).action,
            HoldAction::kRelease);
}

TEST(HoldPolicy, AThreadThatFaultedAgainHasRetried) {
  HoldRecord record = begin_hold(kSettings);
  HoldInput input = in_turn_of_other(input_at(1'000, 300));
  input.faulted_since = true;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
}

TEST(HoldPolicy, AThreadThatWaitsForOthersKeepsNothingEvenInItsTurn) {
  HoldRecord record = begin_hold(kSettings);
  HoldInput input = input_at(1'000, 300);
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRecheck);
  input.paused_since = true;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
}

TEST(HoldPolicy, APageThatNobodyFaultedForIsReleasedAtOnce) {
  HoldRecord record = begin_hold(kSettings);
  EXPECT_EQ(decide(record, input_at(1'000, -1), kSettings).action, HoldAction::kRelease);
}

TEST(HoldPolicy, TheNodeWhoseTurnItIsKeepsWhileItCollects) {
  HoldRecord record = begin_hold(kSettings);
  HoldInput input = input_at(1'000'000, 50'000);
  input.collecting = true;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRecheck);
  EXPECT_EQ(decide(record, in_turn_of_other(input), kSettings).action, HoldAction::kRelease);
}

TEST(HoldPolicy, AReadCopyIsNotProbed) {
  HoldRecord record = begin_hold(kSettings);
  HoldInput input = input_at(1'000'000, 50'000);
  input.exclusive = false;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
}

TEST(HoldPolicy, AProbeThatIsHitDoublesAndAQuietOneReleases) {
  HoldRecord record = begin_hold(kSettings);
  EXPECT_EQ(decide(record, input_at(30'000, 20'000), kSettings).action, HoldAction::kRecheck);
  EXPECT_EQ(decide(record, input_at(60'000, 41'000), kSettings).action, HoldAction::kProbe);
  note_probe_hit(record);
  EXPECT_EQ(decide(record, input_at(80'000, 60'000), kSettings).action, HoldAction::kRecheck);
  EXPECT_EQ(record.probe_interval, 2 * kSettings.probe_first);
  EXPECT_EQ(decide(record, input_at(200'000, 141'000), kSettings).action, HoldAction::kProbe);
  EXPECT_EQ(decide(record, input_at(220'000, 142'000), kSettings).action, HoldAction::kRecheck);
  EXPECT_EQ(decide(record, input_at(240'000, 150'000), kSettings).action, HoldAction::kRelease);
}

TEST(HoldPolicy, AThreadThatSleepsKeepsNothingInAStretchedTurn) {
  HoldRecord record = begin_hold(kSettings);
  HoldInput input = input_at(1'000'000, 900'000);
  input.turn.stretched = true;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRecheck);
  input.collecting = true;  // it sleeps for a page
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRecheck);
  input.collecting = false;
  HoldAction last = HoldAction::kRecheck;
  for (int asked = 0; asked < 3 && last != HoldAction::kRelease; ++asked) {
    last = decide(record, input, kSettings).action;
    input.now += kSettings.probe_quiet;
  }
  EXPECT_EQ(last, HoldAction::kRelease);
}

TEST(HoldPolicy, AStretchedTurnKeepsWhatIsWrittenToItsEnd) {
  HoldRecord record = begin_hold(kSettings);
  HoldInput input = input_at(1'000'000, 900'000);
  input.turn.stretched = true;
  for (; input.now < input.turn.end; input.now += kSettings.floor_limit) {
    EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRecheck);
    input.cpu_used += 1'000;
  }
  input.now = input.turn.begin;
  input.exclusive = false;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
  input.exclusive = true;
  input.cpu_used = -1;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
  input.cpu_used = 900'000;
  input.paused_since = true;
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
  input.paused_since = false;
  input.turn.owner = NodeId{1};
  EXPECT_EQ(decide(record, input, kSettings).action, HoldAction::kRelease);
}

}  // namespace
}  // namespace amasia::dsm::protocol
