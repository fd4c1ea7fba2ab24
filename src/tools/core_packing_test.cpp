// SPDX-License-Identifier: Apache-2.0
#include "tools/core_packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace amasia::tools {
namespace {

double fullest(const CorePacking& packing, std::size_t cores) {
  const auto loads = packing.loads(cores);
  return *std::max_element(loads.begin(), loads.end());
}

TEST(CorePacking, GivesEachItsOwnCoreWhereThereAreEnough) {
  const std::vector<double> shares{1.0, 0.33, 0.5};
  const CorePacking packing = pack_shares(shares, 4);
  EXPECT_EQ(packing.core_of, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(packing.shares, shares);
  EXPECT_EQ(packing.scale, 1);
}

TEST(CorePacking, SharesCoresWithoutSlowingWhereThatIsPossible) {
  // Longest-first would put 1.1 on a core.
  const std::vector<double> shares{0.5, 0.5, 0.4, 0.3, 0.3};
  const CorePacking packing = pack_shares(shares, 2);
  EXPECT_EQ(packing.scale, 1);
  EXPECT_NEAR(fullest(packing, 2), 1, 1e-9);
}

TEST(CorePacking, ScalesAllAlikeWhereTheyDoNotFit) {
  const CorePacking packing = pack_shares(std::vector<double>{1.0, 0.5, 0.33, 0.25}, 2);
  EXPECT_NEAR(packing.scale, 1 / 1.08, 1e-9);  // 1.0 | 0.5 + 0.33 + 0.25
  EXPECT_NEAR(packing.shares[3], 0.25 / 1.08, 1e-9);
  EXPECT_EQ(packing.core_of, (std::vector<std::size_t>{0, 1, 1, 1}));
  const CorePacking one = pack_shares(std::vector<double>{1.0, 1.0}, 1);
  EXPECT_NEAR(one.scale, 0.5, 1e-9);
}

// The fullest core of the best of all packings.
double best_by_trying(const std::vector<double>& shares, std::size_t cores) {
  double best = 1e9;
  const auto count = static_cast<std::size_t>(std::pow(cores, shares.size()));
  for (std::size_t code = 0; code < count; ++code) {
    std::vector<double> loads(cores);
    std::size_t rest = code;
    for (const double share : shares) {
      loads[rest % cores] += share;
      rest /= cores;
    }
    best = std::min(best, *std::max_element(loads.begin(), loads.end()));
  }
  return best;
}

TEST(CorePacking, IsTheBestOneThereIs) {
  std::mt19937 random(20);
  for (int round = 0; round < 300; ++round) {
    const std::size_t cores = 1 + random() % 3;
    std::vector<double> shares(1 + random() % 7);
    for (double& share : shares) share = static_cast<double>(1 + random() % 20) / 20;
    const CorePacking packing = pack_shares(shares, cores);
    const double best = best_by_trying(shares, cores);
    ASSERT_NEAR(fullest(packing, cores) / packing.scale, best, 1e-6) << "round " << round;
    ASSERT_NEAR(packing.scale, std::min(1.0, 1 / best), 1e-6) << "round " << round;
  }
}

TEST(CorePacking, OfManyNodesEndsAndFits) {
  std::mt19937 random(21);
  for (const std::size_t cores : {1, 2, 7, 64, 200}) {
    std::vector<double> shares(64);
    for (double& share : shares) share = static_cast<double>(1 + random() % 100) / 100;
    const CorePacking packing = pack_shares(shares, cores);
    EXPECT_LE(fullest(packing, cores), 1 + 1e-6);
    for (std::size_t node = 0; node < shares.size(); ++node) {
      EXPECT_NEAR(packing.shares[node], shares[node] * packing.scale, 1e-9);
    }
  }
}

}  // namespace
}  // namespace amasia::tools
