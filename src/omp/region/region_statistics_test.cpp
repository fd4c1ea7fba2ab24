// SPDX-License-Identifier: Apache-2.0
#include "omp/region/region_statistics.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

using base::kMillisecond;
using base::RegionStatistics;

// One shared run of two nodes of two and four cores; the second node's are half as fast.
RegionRecord shared_once() {
  RegionRecord record;
  record.site = "a.c:1 main";
  record.model.emplace(std::vector<double>{2, 2, 0});
  record.cores = {2, 4, 0};
  const std::vector<NodeShare> shares = {{.node = NodeId{0}, .threads = 2},
                                         {.node = NodeId{1}, .threads = 4}};
  std::vector<NodeTotals> totals(3);
  totals[0] = {.stall_ns = 4000, .busy_ns = 20 * kMillisecond, .iterations = 100};
  totals[1] = {.stall_ns = 8000, .busy_ns = 40 * kMillisecond, .iterations = 100};
  take_samples(shares, totals, 0, false, record.samples);
  for (const NodeShare& share : shares) record.took_part.set(share.node.value);
  record.runs = 1;
  record.nodes = 2;
  record.note_outcome(11 * kMillisecond, RegionRecord::Way::kShared);
  record.model->observe_shared({record.samples.nodes.data(), 3}, 11 * kMillisecond, false);
  return record;
}

TEST(RegionStatistics, HaveEachNodesPartAndTheSpeedOfItsCores) {
  const RegionStatistics region = statistics_of(shared_once());
  EXPECT_EQ(region.phase, RegionStatistics::Phase::kWarm);
  ASSERT_EQ(region.csr.size(), 3u);
  EXPECT_EQ(region.csr[0], 1.0);
  EXPECT_EQ(region.csr[1], 0.5);
  EXPECT_EQ(region.csr[2], std::nullopt);
  ASSERT_EQ(region.per_node.size(), 2u) << "the third has had no part";
  EXPECT_EQ(region.per_node[1].id, 1u);
  EXPECT_EQ(region.per_node[1].threads, 4u);
  EXPECT_EQ(region.per_node[1].work, 0.5);
  EXPECT_EQ(region.per_node[1].busy_ns, 10 * kMillisecond);
  EXPECT_EQ(region.per_node[1].stall_ns, 2000);
  EXPECT_FALSE(region.per_node[1].dropped);
  EXPECT_EQ(region.predicted_alone_ns, 20 * kMillisecond);
  EXPECT_GT(region.predicted_shared_ns, 10 * kMillisecond);
  EXPECT_EQ(region.shared.runs, 1u);
  EXPECT_EQ(region.alone.runs, 0u);
}

TEST(RegionStatistics, WithoutADecisionHaveTheReason) {
  RegionRecord record;
  record.site = "a.c:1 main";
  record.runs = record.runs_single = 3;
  record.single_reason = SingleReason::kOneThread;
  const RegionStatistics region = statistics_of(record);
  EXPECT_EQ(region.single_node_reason, text_of(SingleReason::kOneThread));
  EXPECT_EQ(region.phase, RegionStatistics::Phase::kNone);
  EXPECT_TRUE(region.csr.empty());
  EXPECT_EQ(region.predicted_alone_ns, 0);
}

TEST(RegionStatistics, ANodeThatHasLostItsPartIsDropped) {
  RegionRecord record = shared_once();
  record.model.emplace(std::vector<double>{2, 0, 0});
  const RegionStatistics region = statistics_of(record);
  ASSERT_EQ(region.per_node.size(), 2u);
  EXPECT_FALSE(region.per_node[0].dropped);
  EXPECT_TRUE(region.per_node[1].dropped);
  EXPECT_EQ(region.csr[1], std::nullopt);
}

TEST(RegionStatistics, HaveWhatWasCountedOfEachNodeAndOfAll) {
  RegionRecord record = shared_once();
  EXPECT_EQ(statistics_of(record).misses_per_kilo, std::nullopt);
  EXPECT_EQ(statistics_of(record).per_node[0].misses_per_kilo, std::nullopt);
  record.samples.nodes[0].cache_misses = 8;
  record.samples.nodes[0].instructions = 1000;
  record.samples.nodes[1].cache_misses = 2;
  record.samples.nodes[1].instructions = 4000;
  for (int run = 0; run < 2; ++run) {
    record.count(record.samples);
    record.model->observe_shared({record.samples.nodes.data(), 3}, 11 * kMillisecond, false);
  }
  const RegionStatistics region = statistics_of(record);
  EXPECT_DOUBLE_EQ(region.per_node[0].misses_per_kilo.value(), 8);
  EXPECT_DOUBLE_EQ(region.per_node[1].misses_per_kilo.value(), 0.5);
  EXPECT_DOUBLE_EQ(region.misses_per_kilo.value(), 2);
}

TEST(RegionRecord, ARunIsSettledIfTheOneBeforeItWasOfTheSameWay) {
  RegionRecord record;
  using enum RegionRecord::Way;
  for (const auto way : {kShared, kShared, kAlone, kElsewhere, kElsewhere, kAlone, kAlone,
                         kShared}) {
    record.note_outcome(10, way);
  }
  EXPECT_EQ(record.shared.runs, 3u);
  EXPECT_EQ(record.shared.settled_runs, 1u);
  EXPECT_EQ(record.shared.settled_ns, 10);
  EXPECT_EQ(record.alone.runs, 3u);
  EXPECT_EQ(record.alone.settled_runs, 1u);
  EXPECT_EQ(record.elsewhere.runs, 2u);
  EXPECT_EQ(record.elsewhere.settled_runs, 1u);
}

}  // namespace
}  // namespace amasia::omp
