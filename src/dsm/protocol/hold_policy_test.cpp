// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/hold_policy.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm::protocol {
namespace {

constexpr HoldSettings kSettings{};

// Node 0 of two, in its own epoch unless said otherwise.
HoldInput input_at(Nanos since_install, Nanos cpu_used) {
  HoldInput input;
  input.installed_at = 10 * kSettings.epoch;
  input.now = input.installed_at + since_install;
  input.cpu_used = cpu_used;
  input.self = NodeId{0};
  input.node_count = 2;
  input.exclusive = true;
  return input;
}

HoldInput in_turn_of_other(HoldInput input) {
  input.now += kSettings.epoch;
  input.installed_at += kSettings.epoch;
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

TEST(HoldPolicy, EveryNodeHasItsTurnWithin100Milliseconds) {
  for (std::uint32_t nodes = 1; nodes <= base::kMaxNodes; ++nodes) {
    const Nanos epoch = epoch_for(nodes);
    EXPECT_LT(epoch * nodes, 100 * base::kMillisecond);
    std::uint64_t seen = 0;
    for (std::uint32_t turn = 0; turn < nodes; ++turn)
      seen |= std::uint64_t{1} << priority_node(turn * epoch, nodes, epoch).value;
    EXPECT_EQ(seen, nodes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << nodes) - 1);
  }
}

}  // namespace
}  // namespace amasia::dsm::protocol
