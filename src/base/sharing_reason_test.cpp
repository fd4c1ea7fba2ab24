// SPDX-License-Identifier: Apache-2.0
#include "base/sharing_reason.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/quantities.hpp"

namespace amasia::base {
namespace {

using Phase = RegionStatistics::Phase;

// Shared three quarters to one, and found worth it.
RegionStatistics shared_region() {
  RegionStatistics region;
  region.site = "a.c:1 main";
  region.runs = 11;
  region.nodes = 2;
  region.phase = Phase::kShared;
  region.per_node = {{.id = 0, .threads = 1, .work = 0.75}, {.id = 1, .threads = 1, .work = 0.25}};
  region.csr = {1.0, 0.33};
  region.predicted_alone_ns = 26'900 * kMicrosecond;
  region.predicted_shared_ns = 21'000 * kMicrosecond;
  region.shared = {11, 253 * kMillisecond, 10, 213 * kMillisecond};
  return region;
}

// The same, not worth it: 2.1 ms for a quarter of 3.6 ms.
RegionStatistics region_alone() {
  RegionStatistics region = shared_region();
  region.phase = Phase::kAlone;
  region.nodes = 1;
  region.predicted_alone_ns = 3'600 * kMicrosecond;
  region.predicted_shared_ns = 4'800 * kMicrosecond;
  region.single_node_reason = "sharing it would cost more than it saves";
  region.shared = {2, 10 * kMillisecond, 1, 5 * kMillisecond};
  region.alone = {9, 33 * kMillisecond, 8, 29 * kMillisecond};
  region.single_node_runs = 9;
  return region;
}

TEST(SharingReason, SharedHoldsWhatItTakesAgainstWhatAloneWould) {
  RegionStatistics region = shared_region();
  EXPECT_EQ(sharing_reason(region),
            "shared 0.75 : 0.25: 21.3 ms a run, where node 0 alone would take 26.9 ms (predicted)");
  region.tried_alone = true;
  EXPECT_EQ(sharing_reason(region),
            "shared 0.75 : 0.25: 21.3 ms a run, where node 0 alone took 26.9 ms when tried");
  region.rule = RegionStatistics::Rule::kAlways;
  region.predicted_alone_ns = 0;
  EXPECT_EQ(sharing_reason(region), "shared 0.75 : 0.25 whatever it costs: 21.3 ms a run");
  region.rule = RegionStatistics::Rule::kThreshold;
  EXPECT_EQ(sharing_reason(region),
            "shared 0.75 : 0.25 as it faults less often than breaks even: 21.3 ms a run");
  region.rule = RegionStatistics::Rule::kPrediction;
  region.gathered = true;
  EXPECT_EQ(sharing_reason(region),
            "shared 0.75 : 0.25, as all regions together are quicker so: 21.3 ms a run");
}

TEST(SharingReason, AloneByPredictionSaysWhatSharingWouldCost) {
  RegionStatistics region = region_alone();
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: sharing would cost 2.1 ms for 900.0 us of work moved");
  region.stall_ns_expected = 1'200 * kMicrosecond;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: sharing would cost 2.1 ms, mostly stall, for 900.0 us of work moved");
  region.stall_ns_expected = 0;
  region.charged_ns = 1'200 * kMicrosecond;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: sharing would cost 2.1 ms, mostly stall, for 900.0 us of work moved");
  region.charged_ns = 0;
  region.fork_join_ns = 1'200 * kMicrosecond;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: sharing would cost 2.1 ms, mostly to fork and join, for 900.0 us of "
            "work moved");
}

TEST(SharingReason, ElsewhereHoldsItAgainstNodeZeroAndSharing) {
  RegionStatistics region = shared_region();
  region.phase = Phase::kElsewhere;
  region.elsewhere = {9, 33 * kMillisecond, 8, 26 * kMillisecond};
  region.elsewhere_node = 1;
  region.predicted_alone_ns = 9'600 * kMicrosecond;
  region.predicted_shared_ns = 12 * kMillisecond;
  region.misses_per_kilo = 4.25;
  EXPECT_EQ(sharing_reason(region),
            "on node 1 only: 3.2 ms a run, where node 0 alone would take 9.6 ms (predicted), and "
            "sharing 12.0 ms; 4.2 cache misses in 1000 instructions");
  region.gathered = true;
  EXPECT_EQ(sharing_reason(region).substr(0, 49),
            "on node 1 only, with other regions: 3.2 ms a run,");
  region.gathered = false;
  region.rule = RegionStatistics::Rule::kThreshold;
  region.misses_per_kilo = 0.5;
  EXPECT_EQ(sharing_reason(region),
            "on node 1 only: 3.2 ms a run, as page faults are too frequent to share it and cache "
            "misses are few; 0.5 cache misses in 1000 instructions");
}

TEST(SharingReason, BroughtHomeOnTheWayUntilItHasRunAlone) {
  RegionStatistics region = region_alone();
  region.shared = {1, 4 * kSecond, 0, 0};
  region.alone = {};
  region.runs_come_home = 1;
  region.lost_before_home_ns = 261 * kMillisecond;
  region.runs = 1;
  EXPECT_EQ(sharing_reason(region),
            "brought home to node 0 on the way, as sharing had cost 261.0 ms by then");
  region.runs = region.shared.runs = 2;
  EXPECT_EQ(sharing_reason(region),
            "brought home to node 0 on the way, as sharing had cost 261.0 ms by then (1 of 2 "
            "shared runs)");
  region.alone.runs = 1;
  EXPECT_EQ(sharing_reason(region).substr(0, 28), "on node 0 only: sharing woul");
}

TEST(SharingReason, AloneAfterATrialSaysWhatWasMeasured) {
  RegionStatistics region = region_alone();
  region.tried_alone = true;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: 3.6 ms a run when tried, where sharing 0.75 : 0.25 takes 4.8 ms");
}

TEST(SharingReason, AloneThoughThePredictionSaysOtherwiseNamesTheFirstRun) {
  RegionStatistics region = region_alone();
  region.predicted_shared_ns = 3 * kMillisecond;
  region.stall_ns_expected = 25 * kMillisecond;
  region.shared = {1, 30 * kMillisecond, 0, 0};
  region.runs = 10;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: the first shared run took 30.0 ms, 25.0 ms of it stall, alone 3.6 ms");
}

TEST(SharingReason, KeptOnOneNodeForAnotherReason) {
  RegionStatistics region;
  region.runs = region.single_node_runs = 4;
  region.single_node_reason = "it has one thread";
  EXPECT_EQ(sharing_reason(region), "on node 0 only: it has one thread");
  region.runs = 6;
  EXPECT_EQ(sharing_reason(region), "on node 0 only: it has one thread (4 of 6 runs)");
  region = shared_region();
  region.runs = 13;
  region.single_node_runs = 2;
  region.single_node_reason = "another thread's region was running across nodes";
  const std::string text = sharing_reason(region);
  EXPECT_NE(text.find("; 2 of 13 runs stayed on one node"), std::string::npos) << text;
}

TEST(SharingReason, NeverRun) {
  RegionStatistics region = shared_region();
  region.runs = 0;
  EXPECT_EQ(sharing_reason(region), "not known: it never ran to its end");
}

TEST(SharingReason, ADroppedNodeSavesLessThanItCosts) {
  RegionStatistics region = shared_region();
  region.per_node.push_back({.id = 2, .dropped = true});
  EXPECT_EQ(sharing_reason(region),
            "shared 0.75 : 0.25: 21.3 ms a run, where node 0 alone would take 26.9 ms "
            "(predicted); node 2 would save less than it costs");
  region.per_node.push_back({.id = 5, .dropped = true});
  const std::string text = sharing_reason(region);
  EXPECT_NE(text.find("; nodes 2, 5 would save less than they cost"), std::string::npos) << text;
  region = region_alone();
  region.predicted_shared_ns = region.predicted_alone_ns - 1;
  region.per_node[1].dropped = true;
  EXPECT_EQ(sharing_reason(region), "on node 0 only: node 1 would save less than it costs");
  region.rule = RegionStatistics::Rule::kThreshold;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: node 1 would fault more often than breaks even");
}

TEST(SharingReason, WhatIsNotDecidedYetSaysSo) {
  RegionStatistics region = shared_region();
  region.phase = Phase::kWarm;
  EXPECT_EQ(sharing_reason(region),
            "shared 0.75 : 0.25 while data moved there: 21.3 ms a run, where node 0 alone would "
            "take 26.9 ms (predicted)");
  region.phase = Phase::kTrial;
  EXPECT_EQ(sharing_reason(region),
            "on trial on node 0: shared 0.75 : 0.25 it took 21.3 ms a run, alone 26.9 ms is "
            "predicted");
  region.phase = Phase::kCold;
  EXPECT_EQ(
      sharing_reason(region),
      "to be shared again, to see what that takes now; 21.3 ms a run shared so far");
  region.alone = {2, 50 * kMillisecond, 1, 24 * kMillisecond};
  EXPECT_EQ(sharing_reason(region),
            "to be shared again, to see what that takes now; 21.3 ms a run shared so "
            "far, 24.0 ms on node 0 alone");
}

TEST(SharingReason, OfManyNodesTheRangeIsNamed) {
  RegionStatistics region = shared_region();
  region.per_node.clear();
  for (std::uint32_t id = 0; id < 16; ++id) {
    region.per_node.push_back({.id = id, .threads = 2, .work = id == 3 ? 0.25 : 0.05});
  }
  EXPECT_EQ(shares_text(region), "0.05 to 0.25 on 16 nodes");
}

// Whatever the values, the sentence of a region that is alone by prediction has a cost that exceeds
// what it moves, or does not speak of cost.
TEST(SharingReason, ACostThatIsNamedExceedsWhatItMoves) {
  std::mt19937_64 random(20221121);
  int named = 0;
  for (int round = 0; round < 2000; ++round) {
    RegionStatistics region = region_alone();
    const double part = static_cast<double>(random() % 1001) / 1000;
    region.per_node[0].work = part;
    region.per_node[1].work = 1 - part;
    // In whole milliseconds below ten seconds, so that the sentence shows the difference.
    const Nanos alone = static_cast<Nanos>(1 + random() % 4000) * kMillisecond;
    const Nanos shared = static_cast<Nanos>(1 + random() % 4000) * kMillisecond;
    region.predicted_alone_ns = alone;
    region.predicted_shared_ns = shared;
    const std::string text = sharing_reason(region);
    const bool names_cost = text.find("sharing would cost") != std::string::npos;
    EXPECT_EQ(names_cost, shared >= alone) << text << " at round " << round;
    if (!names_cost) continue;
    ++named;
    const auto moved = static_cast<double>(alone) * (1 - part);
    const auto cost = moved + static_cast<double>(shared - alone);
    const auto whole = [](double nanos) { return duration_text(static_cast<Nanos>(nanos + 0.5)); };
    EXPECT_EQ(text, "on node 0 only: sharing would cost " + whole(cost) + " for " + whole(moved) +
                        " of work moved")
        << "at round " << round;
  }
  EXPECT_GT(named, 500);
}

TEST(SharingReason, AllRegionsTogether) {
  RegionStatistics region = shared_region();
  region.phase = Phase::kShared;
  region.nodes = 1;
  region.single_node_reason = "all regions together are quicker there";
  region.alone = {4, 60 * kMillisecond, 3, 45 * kMillisecond};
  region.runs = 15;
  EXPECT_EQ(sharing_reason(region),
            "on node 0 only: all regions together are quicker there; shared 0.75 : 0.25 it took "
            "21.3 ms a run, alone 15.0 ms");
}

}  // namespace
}  // namespace amasia::base
