// SPDX-License-Identifier: Apache-2.0
#include "loops/probe_cache.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace amasia::loops {
namespace {

const std::vector<std::uint32_t> kThreads = {2, 2};

Report run_of(std::uint64_t compute_ns, std::uint64_t stall_ns = 0) {
  return {1000, 1000 * compute_ns, 1000 * stall_ns, stall_ns};
}

double ratio(const NextRun& next) {
  return static_cast<double>(next.speeds[0]) / static_cast<double>(next.speeds[1]);
}

TEST(ProbeCache, GivesTheSpeedsThatWereMeasured) {
  ProbeCache cache;
  const NextRun next = cache.finish(1, kThreads, std::vector<Report>{run_of(100), run_of(300)});
  EXPECT_TRUE(next.known);
  EXPECT_NEAR(ratio(next), 3, 0.01);
  ASSERT_NE(cache.find(1, 1), nullptr);
  EXPECT_EQ(cache.find(1, 1)->mean.compute, 300);
  EXPECT_EQ(cache.find(2, 1), nullptr);
}

TEST(ProbeCache, KeepsLoopsApart) {
  ProbeCache cache;
  cache.finish(1, kThreads, std::vector<Report>{run_of(100), run_of(300)});
  const NextRun next = cache.finish(2, kThreads, std::vector<Report>{run_of(300), run_of(100)});
  EXPECT_NEAR(ratio(next), 1.0 / 3, 0.01);
}

// Runs differ by up to 8 %: the speeds that all nodes begin with do not.
TEST(ProbeCache, SettledSpeedsStayWithinTheNoise) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    ProbeCache cache;
    NextRun settled;
    for (int run = 0; run < 100; ++run) {
      const auto noise = [&random](std::uint64_t ns) { return ns + random() % (ns / 12); };
      const NextRun next =
          cache.finish(1, kThreads, std::vector<Report>{run_of(noise(1000)), run_of(noise(2000))});
      EXPECT_TRUE(next.known);
      EXPECT_NEAR(ratio(next), 2, 0.3) << "seed " << seed;
      if (run == ProbeCache::kProbes) settled = next;
      ASSERT_TRUE(run <= static_cast<int>(ProbeCache::kProbes) || next == settled) << seed;
    }
  }
}

TEST(ProbeCache, NoticesWhenANodeBecomesSlower) {
  ProbeCache cache;
  NextRun next;
  for (int run = 0; run < 20; ++run) {
    next = cache.finish(1, kThreads, std::vector<Report>{run_of(1000), run_of(1000)});
  }
  EXPECT_NEAR(ratio(next), 1, 0.01);
  next = cache.finish(1, kThreads, std::vector<Report>{run_of(1000), run_of(4000)});
  EXPECT_NEAR(ratio(next), 1, 0.01) << "once may be chance";
  next = cache.finish(1, kThreads, std::vector<Report>{run_of(1000), run_of(4000)});
  EXPECT_NEAR(ratio(next), 4, 0.01);
}

// The first run pays for data that comes once; the node that was left out for it is tried again.
TEST(ProbeCache, TriesNodesAgainWhoseDataHasComeMeanwhile) {
  ProbeCache cache;
  NextRun next = cache.finish(1, kThreads, std::vector<Report>{run_of(100), run_of(100, 9900)});
  EXPECT_FALSE(next.known);
  EXPECT_EQ(next.speeds[1], 0u);
  for (std::uint32_t run = 1; run < 2 * ProbeCache::kProbes; ++run) {
    next = cache.finish(1, kThreads, std::vector<Report>{run_of(100), run_of(100)});
  }
  EXPECT_TRUE(next.known);
  EXPECT_GT(next.speeds[1], 0u);
  EXPECT_LT(ratio(next), 1.1);
}

TEST(ProbeCache, LeavesOutWhatStaysTooDear) {
  ProbeCache cache;
  NextRun next;
  for (std::uint32_t run = 0; run < ProbeCache::kRetries; ++run) {
    EXPECT_FALSE(next.known);
    next = cache.finish(1, kThreads, std::vector<Report>{run_of(100), run_of(100, 9900)});
  }
  EXPECT_TRUE(next.known);
  EXPECT_EQ(next.speeds[1], 0u);
  next = cache.finish(1, kThreads, std::vector<Report>{run_of(100), {}});
  EXPECT_TRUE(next.known);
  EXPECT_EQ(next.speeds[1], 0u);
}

}  // namespace
}  // namespace amasia::loops
