// SPDX-License-Identifier: Apache-2.0
#include "omp/region/region.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace amasia::omp {
namespace {

std::vector<std::uint32_t> threads_of(const std::vector<NodeShare>& shares) {
  std::vector<std::uint32_t> threads;
  for (const NodeShare& share : shares) threads.push_back(share.threads);
  return threads;
}

using Threads = std::vector<std::uint32_t>;

TEST(PackThreads, FillsTheOriginFirst) {
  const Threads capacity = {4, 4, 2};
  EXPECT_EQ(threads_of(pack_threads(1, capacity)), (Threads{1}));
  EXPECT_EQ(threads_of(pack_threads(4, capacity)), (Threads{4}));
  EXPECT_EQ(threads_of(pack_threads(5, capacity)), (Threads{4, 1}));
  EXPECT_EQ(threads_of(pack_threads(10, capacity)), (Threads{4, 4, 2}));
}

TEST(PackThreads, DealsTheExcessByCapacity) {
  EXPECT_EQ(threads_of(pack_threads(8, Threads{1, 1})), (Threads{4, 4}));
  EXPECT_EQ(threads_of(pack_threads(20, Threads{4, 4, 2})), (Threads{8, 8, 4}));
}

TEST(PackThreads, NumbersAllThreadsOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Threads capacity(1 + random() % 64);
    for (auto& each : capacity) each = 1 + random() % 64;
    const std::uint32_t threads = 1 + random() % 9000;
    const auto shares = pack_threads(threads, capacity);
    std::uint32_t offset = 0;
    for (const NodeShare& share : shares) {
      ASSERT_EQ(share.offset, offset);
      ASSERT_GT(share.threads, 0u);
      offset += share.threads;
    }
    ASSERT_EQ(offset, threads);
    ASSERT_EQ(shares[0].node, base::kOrigin);
  }
}

// Two of three nodes, of two threads each, and half a core for the second one.
class Limits : public ::testing::Test {
 protected:
  loops::RegionPart second(Nanos cpu, Nanos rest) {
    std::vector<NodeTotals> totals(3);
    totals[0] = {.stall_ns = 0, .busy_ns = 8000, .cpu_ns = 8000};
    totals[1] = {.stall_ns = 2000, .busy_ns = 4000, .cpu_ns = cpu};
    take_samples(shares_, totals, 0, true, samples_);
    hold_to_limits(shares_, totals, limits_, rest, samples_);
    return samples_.nodes[1];
  }

  const std::vector<NodeShare> shares_ = {{.node = NodeId{0}, .threads = 2},
                                          {.node = NodeId{1}, .threads = 2}};
  std::vector<loops::CpuLimit> limits_{{}, {.cores = 0.5, .period = 3000}, {}};
  Samples samples_;
};

TEST_F(Limits, ANodeIsAsBusyAsItIsInManyExecutions) {
  EXPECT_EQ(second(4000, 0).time(), 8000) << "whether it was kept waiting this time or not";
  EXPECT_EQ(second(4000, 0).stall, 1000) << "in which the limit was not used up";
  EXPECT_EQ(second(4000, 1000).time(), 7000);
  EXPECT_EQ(second(4000, 90'000).time(), 5000);
  EXPECT_EQ(second(1000, 0).busy, 2000) << "it took longer for another reason";
  EXPECT_EQ(samples_.nodes[0].busy, 4000);
}

TEST_F(Limits, WhereNoNodeHasOneTimesAreTheirOwn) {
  limits_.clear();
  EXPECT_EQ(second(4000, 0).busy, 2000);
}

// It does what lies between regions.
TEST_F(Limits, TheOriginDoesNotRest) {
  limits_[0] = {.cores = 0.5, .period = 3000};
  second(4000, 90'000);
  EXPECT_EQ(samples_.nodes[0].busy, 16'000);
}

void a_function_of_this_program() {}

TEST(Site, NamesThePlaceWhereItIsKnown) {
  const auto* const function = reinterpret_cast<const void*>(a_function_of_this_program);
  EXPECT_EQ(site_of(function, ";/src/ep.c;main;53;9;;"), "/src/ep.c:53 main");
  for (const char* unknown : {"", ";unknown;unknown;0;0;;", ";;;", ";only"}) {
    const std::string site = site_of(function, unknown);
    EXPECT_NE(site.find("+0x"), std::string::npos) << site;
  }
  EXPECT_EQ(site_of(reinterpret_cast<const void*>(16), ""), "0x10");
}

TEST(SingleReason, EachHasAText) {
  for (int reason = 1; reason < static_cast<int>(SingleReason::kCount); ++reason) {
    EXPECT_STRNE(text_of(static_cast<SingleReason>(reason)), "") << reason;
  }
}

}  // namespace
}  // namespace amasia::omp
