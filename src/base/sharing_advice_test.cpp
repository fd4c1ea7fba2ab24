// SPDX-License-Identifier: Apache-2.0
#include "base/sharing_advice.hpp"

#include <gtest/gtest.h>

namespace amasia::base {
namespace {

// A triangular loop that ran once on two nodes of which the other one is as fast.
RegionStatistics uneven() {
  RegionStatistics region;
  region.runs = 1;
  region.nodes = 2;
  region.phase = RegionStatistics::Phase::kWarm;
  region.shared = {1, 950 * kMillisecond, 0, 0};
  region.per_node = {{.id = 0, .threads = 1, .work = 0.5, .busy_ns = 570 * kMillisecond},
                     {.id = 1, .threads = 1, .work = 0.5, .busy_ns = 900 * kMillisecond,
                      .stall_ns = 50 * kMillisecond},
                     {.id = 2}};
  region.loops.resize(1);
  return region;
}

TEST(SharingAdvice, SaysWhatPartsByTimeWouldTake) {
  EXPECT_EQ(sharing_advice(uneven()),
            "uneven: node 0 took 570.0 ms, node 1 950.0 ms; with parts by that all would take "
            "about 712.5 ms. --profile=FILE with these statistics begins so in the next run, "
            "schedule(runtime) finds it within one");
}

TEST(SharingAdvice, PartsOfUnlikeSizeCount) {
  RegionStatistics region = uneven();
  region.per_node[0].work = 0.75;
  region.per_node[1].work = 0.25;
  // 0.75 of it in 570 ms and 0.25 in 950 ms: 633 ms in all.
  EXPECT_NE(sharing_advice(region).find("about 633.3 ms"), std::string::npos)
      << sharing_advice(region);
}

TEST(SharingAdvice, NoneWhereThereIsLittleToGain) {
  RegionStatistics region = uneven();
  region.per_node[0].busy_ns = 840 * kMillisecond;
  EXPECT_EQ(sharing_advice(region), "");
  region = uneven();
  for (RegionNodeStatistics& node : region.per_node) node.busy_ns /= 100;
  region.per_node[1].stall_ns = 0;
  EXPECT_EQ(sharing_advice(region), "");
}

TEST(SharingAdvice, NoneWhereTheRuntimeKnowsBetter) {
  const auto none = [](auto change) {
    RegionStatistics region = uneven();
    change(region);
    return sharing_advice(region).empty();
  };
  EXPECT_TRUE(none([](RegionStatistics& region) { region.shared.runs = 2; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.shared.runs = 0; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.alone.runs = 1; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.elsewhere.runs = 1; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.runs_come_home = 1; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.profiled = true; }));
  EXPECT_TRUE(none([](RegionStatistics& region) {
    region.loops[0].form = LoopStatistics::Form::kPool;
  }));
  EXPECT_TRUE(none([](RegionStatistics& region) {
    region.loops[0].form = LoopStatistics::Form::kOrdered;
  }));
  EXPECT_TRUE(none([](RegionStatistics& region) {
    region.rule = RegionStatistics::Rule::kThreshold;
  }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.per_node[0].threads = 0; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.per_node[0].work = 0; }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.per_node.clear(); }));
  EXPECT_TRUE(none([](RegionStatistics& region) { region.loops.clear(); }))
      << "it may be a single that one node has";
}

}  // namespace
}  // namespace amasia::base
