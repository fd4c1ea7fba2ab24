// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "omp/region/region_statistics.hpp"
#include "omp/work_sharing/loopback_job.hpp"

namespace amasia::omp {
namespace {

using base::LoopStatistics;
using loops::ScheduleKind;

RegionRecord random_region(std::mt19937& random) {
  RegionRecord record;
  std::uint32_t offset = 0;
  for (std::uint16_t id = 0; id < 1 + random() % 5; ++id) {
    const auto threads = static_cast<std::uint32_t>(1 + random() % 4);
    const auto speed = static_cast<std::uint32_t>(1 + random() % 1000);
    record.shares.push_back({NodeId{id}, threads, offset, speed});
    offset += threads;
  }
  return record;
}

// What a node's threads are given, thread by thread.
std::uint64_t dealt(const NodeShare& node, const RegionRecord& record, const LoopRun& run) {
  const NodeShare& end = record.shares.back();
  const std::uint32_t all = end.offset + end.threads;
  std::uint64_t sum = 0;
  for (std::uint32_t id = node.offset; id < node.offset + node.threads; ++id) {
    if (run.form == LoopForm::kVectorBlocks) {
      sum += loops::static_block_of_chunks(run.iterations, run.chunk, id, all).size();
      continue;
    }
    for (std::uint64_t round = 0;; ++round) {
      const auto chunk = loops::static_chunk(run.iterations, run.chunk, id, all, round);
      if (!chunk.has_value()) break;
      sum += chunk->size();
    }
  }
  return sum;
}

TEST(LoopStatistics, SharesOfChunksAreThoseThatThreadsAreGiven) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const RegionRecord record = random_region(random);
    LoopBook::Entry met;
    met.last.form = seed % 3 == 0 ? LoopForm::kVectorBlocks : LoopForm::kChunks;
    met.last.iterations = 1 + random() % 300;
    met.last.chunk = seed % 3 == 0 ? 1u << random() % 5 : 1 + random() % 20;
    const LoopStatistics loop = statistics_of(record, met, nullptr);
    ASSERT_EQ(loop.per_node.size(), record.shares.size());
    for (std::size_t r = 0; r < loop.per_node.size(); ++r) {
      const auto size = static_cast<double>(dealt(record.shares[r], record, met.last));
      EXPECT_NEAR(loop.per_node[r].share, size / static_cast<double>(met.last.iterations), 1e-9)
          << "seed " << seed << ", node " << r;
    }
  }
}

TEST(LoopStatistics, BlocksFollowTheSpeedsOfTheRegion) {
  RegionRecord record;
  record.shares = {{NodeId{0}, 1, 0, 300}, {NodeId{2}, 1, 1, 100}, {NodeId{3}, 1, 2, 0}};
  LoopBook::Entry met;
  met.runs = 3;
  met.iterations = 3000;
  met.last.iterations = 1000;
  const LoopStatistics loop = statistics_of(record, met, nullptr);
  EXPECT_EQ(loop.form, LoopStatistics::Form::kBlocks);
  EXPECT_EQ(loop.kind, "static");
  EXPECT_EQ(loop.runs, 3u);
  ASSERT_EQ(loop.per_node.size(), 3u);
  EXPECT_EQ(loop.per_node[0].share, 0.75);
  EXPECT_EQ(loop.per_node[0].csr, 1.0);
  EXPECT_EQ(loop.per_node[1].id, 2u);
  EXPECT_EQ(loop.per_node[1].share, 0.25);
  EXPECT_NEAR(loop.per_node[1].csr.value(), 1.0 / 3, 1e-9);
  EXPECT_EQ(loop.per_node[2].share, 0);
  EXPECT_EQ(loop.per_node[2].csr, std::nullopt);
}

// Loops that are handed out at run time, over two nodes: what came of them is known for each, all
// iterations were dealt, and once they are known their time is predicted.
TEST(LoopStatistics, OfPooledLoopsTellWhatCameOfThem) {
  for (const auto kind : {ScheduleKind::kDynamic, ScheduleKind::kAwf, ScheduleKind::kHetProbe,
                          ScheduleKind::kHetProbeI}) {
    LoopbackJob job({2, 1});
    LoopBook book;
    char long_one, short_one;
    constexpr std::uint64_t kLeastRuns = 6, kMostRuns = 1000, kCount = 200;
    const auto is_predicted = [&] {
      const auto outcome = job.sharing(0).outcome_of(nullptr, &long_one);
      return outcome.has_value() && outcome->expected_runs > 0;
    };
    // A node that another one leaves nothing has nothing to tell, so that the first runs may pass
    // without a prediction.
    std::uint64_t runs = 0;
    for (; runs < kLeastRuns || (runs < kMostRuns && !is_predicted()); ++runs) {
      job.region([&](ThreadFrame& frame) {
        WorkSharing& sharing = *frame.team->node().work_sharing();
        frame.book = frame.global_id == 0 ? &book : nullptr;
        sharing.begin(frame, {0, 1, kCount}, {kind, 0}, LoopSite(&long_one));
        loops::Iterations range;
        while (sharing.next(frame, range)) std::this_thread::yield();
        sharing.begin(frame, {0, 1, 2}, {ScheduleKind::kDynamic, 1}, LoopSite(&short_one));
        while (sharing.next(frame, range)) std::this_thread::yield();
      });
    }
    const auto entries = book.entries();
    ASSERT_EQ(entries.size(), 2u);
    for (const auto& met : entries) {
      const auto outcome = job.sharing(0).outcome_of(nullptr, met.code);
      ASSERT_TRUE(outcome.has_value());
      EXPECT_EQ(outcome->runs, runs);
      EXPECT_EQ(met.runs, runs);
      const LoopStatistics loop = statistics_of({}, met, &*outcome);
      EXPECT_EQ(loop.form, LoopStatistics::Form::kPool);
      ASSERT_EQ(loop.per_node.size(), 2u);
      EXPECT_NEAR(loop.per_node[0].share + loop.per_node[1].share, 1, 1e-9);
      EXPECT_GT(loop.elapsed_ns, 0);
      if (met.code == &short_one) {
        EXPECT_EQ(loop.iterations, 2 * runs);
        EXPECT_EQ(loop.predicted_runs, 0u) << "it asks for nothing, so it tells nothing";
        continue;
      }
      EXPECT_EQ(loop.iterations, kCount * runs);
      EXPECT_GT(loop.predicted_runs, 0u);
      EXPECT_GT(loop.predicted_ns, 0);
      EXPECT_GT(loop.measured_ns, 0);
      EXPECT_GT(loop.per_node[0].probes + loop.per_node[1].probes, 0u);
    }
  }
}

}  // namespace
}  // namespace amasia::omp
