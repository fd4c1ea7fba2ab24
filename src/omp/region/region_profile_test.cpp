// SPDX-License-Identifier: Apache-2.0
#include "omp/region/region_profile.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace amasia::omp {
namespace {

using base::RegionStatistics;
using Phase = RegionStatistics::Phase;

base::JobStatistics job_of(const RegionStatistics& region, std::size_t nodes = 2) {
  base::JobStatistics job;
  job.nodes.resize(nodes);
  job.regions = {region};
  return job;
}

// A loop whose iterations get dearer: half of them took node 1 three times as long.
RegionStatistics once() {
  RegionStatistics region;
  region.site = "a.c:7 main";
  region.phase = Phase::kWarm;
  region.runs = 1;
  region.shared = {1, 800, 0, 0};
  region.csr = {1.0, 1.0};
  region.per_node = {{.id = 0, .threads = 2, .work = 0.5, .busy_ns = 200},
                     {.id = 1, .threads = 1, .work = 0.5, .busy_ns = 500, .stall_ns = 100}};
  return region;
}

std::vector<double> speeds_of(const RegionStatistics& region, std::size_t nodes = 2) {
  const auto profile = RegionProfile::make(job_of(region, nodes), nodes);
  EXPECT_TRUE(profile.ok());
  const auto found = profile.value().core_speeds(region.site);
  return {found.begin(), found.end()};
}

TEST(RegionProfile, OfOneExecutionHasWhatNodesTook) {
  const std::vector<double> speeds = speeds_of(once());
  ASSERT_EQ(speeds.size(), 2U);
  EXPECT_DOUBLE_EQ(speeds[0], 1) << "two threads did their part in 200 ns";
  EXPECT_DOUBLE_EQ(speeds[1], 2.0 / 3);
}

TEST(RegionProfile, OfOneExecutionThatBeganWithAProfileLiesBetween) {
  RegionStatistics region = once();
  region.profiled = true;
  region.csr = {1.0, 0.5};
  const std::vector<double> speeds = speeds_of(region);
  ASSERT_EQ(speeds.size(), 2U);
  EXPECT_DOUBLE_EQ(speeds[0], 1);
  EXPECT_DOUBLE_EQ(speeds[1], std::sqrt(0.5 * 2 / 3));
  region.csr = {1.0, std::nullopt};
  EXPECT_EQ(speeds_of(region), (std::vector<double>{1, 0}));
  region.csr = {};
  EXPECT_EQ(speeds_of(region).size(), 2U);
}

// Two like nodes, and a loop whose cost rises from 0.4 to 1.6: evenly shared it takes 0.65 of one
// node's time, at best 0.5.
TEST(RegionProfile, RunAfterRunAnUnevenLoopComesIntoBalance) {
  RegionStatistics region = once();
  region.csr = {1.0, 1.0};
  double took = 0;
  for (int run = 0; run < 4; ++run) {
    const double part = *region.csr[0] / (*region.csr[0] + *region.csr[1]);
    const double first = 0.4 * part + 0.6 * part * part;
    took = std::max(first, 1 - first);
    const auto nanos = [](double time) { return static_cast<base::Nanos>(1e9 * time); };
    region.per_node = {{.id = 0, .threads = 1, .work = part, .busy_ns = nanos(first)},
                       {.id = 1, .threads = 1, .work = 1 - part, .busy_ns = nanos(1 - first)}};
    const std::vector<double> speeds = speeds_of(region);
    region.csr = {speeds[0], speeds[1]};
    region.profiled = true;
    if (run == 0) {
      EXPECT_NEAR(took, 0.65, 1e-9);
    } else {
      EXPECT_LT(took, run == 1 ? 0.54 : 0.515);
    }
  }
}

TEST(RegionProfile, OfSeveralHasWhatTheyCameTo) {
  RegionStatistics region = once();
  region.phase = Phase::kShared;
  region.csr = {0.5, 1.0};
  EXPECT_EQ(speeds_of(region), (std::vector<double>{0.5, 1}));
  region.csr = {1.0, std::nullopt};
  EXPECT_EQ(speeds_of(region), (std::vector<double>{1, 0})) << "it had lost its part";
}

TEST(RegionProfile, KnowsWhatWasAlone) {
  RegionStatistics region = once();
  region.until_retried_ns = 500;
  EXPECT_EQ(RegionProfile::make(job_of(region), 2).value().until_retried(region.site), 0);
  region.phase = Phase::kAlone;
  EXPECT_EQ(RegionProfile::make(job_of(region), 2).value().until_retried(region.site), 500);
  EXPECT_EQ(RegionProfile().until_retried(region.site), 0);
}

TEST(RegionProfile, HasNothingOfWhatWasNotSharedToItsEnd) {
  for (const Phase phase : {Phase::kNone, Phase::kTrial, Phase::kAlone, Phase::kElsewhere}) {
    RegionStatistics region = once();
    region.phase = phase;
    EXPECT_TRUE(speeds_of(region).empty());
  }
  RegionStatistics region = once();
  region.runs_come_home = 1;
  EXPECT_TRUE(speeds_of(region).empty());
  region.shared.runs = 2;
  EXPECT_FALSE(speeds_of(region).empty());
  region.shared.runs = region.runs_come_home = 0;
  EXPECT_TRUE(speeds_of(region).empty());
}

// A file may say anything.
TEST(RegionProfile, NeedsTheOriginAndFitsTheJob) {
  RegionStatistics region = once();
  region.per_node.erase(region.per_node.begin());
  EXPECT_TRUE(speeds_of(region).empty());
  region = once();
  region.per_node[1].id = 63;
  EXPECT_EQ(speeds_of(region), (std::vector<double>{1, 0}));
  region = once();
  region.phase = Phase::kShared;
  region.csr = {1.0, 1.0, 1.0};
  EXPECT_TRUE(speeds_of(region).empty());
  region.csr = {0.0, 1.0};
  EXPECT_TRUE(speeds_of(region).empty());
  const auto other = RegionProfile::make(job_of(once(), 3), 2);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "is of a run on 3 nodes, not 2");
}

TEST(RegionProfile, KnowsNothingOfOtherPlaces) {
  EXPECT_TRUE(RegionProfile().core_speeds("a.c:7 main").empty());
  const auto profile = RegionProfile::make(job_of(once()), 2);
  EXPECT_TRUE(profile.value().core_speeds("a.c:8 main").empty());
}

}  // namespace
}  // namespace amasia::omp
