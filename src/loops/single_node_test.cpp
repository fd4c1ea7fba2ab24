// SPDX-License-Identifier: Apache-2.0
#include "loops/single_node.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace amasia::loops {
namespace {

using Nodes = std::vector<SingleNode>;

// The paper's machine: few fast cores with large caches, and many slow ones.
std::vector<SingleNode> xeon_and_thunder() {
  return {{.throughput = 16 * 3.0, .core_speed = 3}, {.throughput = 96 * 1.0, .core_speed = 1}};
}

TEST(SingleNode, IsChosenByCacheMissesAsInThePaper) {
  const auto nodes = xeon_and_thunder();
  // Figure 9: BT-C, cfd and lud have fewer than three, CG-C, SP-C and streamcluster more.
  for (const double misses : {0.0, 0.5, 2.9}) EXPECT_EQ(choose_by_counters(nodes, misses), 1u);
  for (const double misses : {3.0, 8.0, 30.0}) EXPECT_EQ(choose_by_counters(nodes, misses), 0u);
  EXPECT_EQ(choose_by_counters(nodes, std::nullopt), 0u) << "without counters it stays";
}

TEST(SingleNode, OfEqualOnesIsTheLowest) {
  const std::vector<SingleNode> alike(3, {.throughput = 4, .core_speed = 1});
  EXPECT_EQ(choose_by_counters(alike, 1.0), 0u);
  EXPECT_EQ(choose_by_counters(alike, 9.0), 0u);
}

TEST(SingleNode, ThatIsNotToBeUsedIsNotChosen) {
  auto nodes = xeon_and_thunder();
  nodes[1].throughput = 0;
  EXPECT_EQ(choose_by_counters(nodes, 0.0), 0u);
}

TEST(SingleNode, IsPredictedByWhatItComputedOrElseByItsSpeedIfMissesAreFew) {
  auto nodes = xeon_and_thunder();
  nodes[0].alone_ns = 1000;
  EXPECT_DOUBLE_EQ(alone_on(nodes, 0, std::nullopt), 1000);
  EXPECT_DOUBLE_EQ(alone_on(nodes, 1, std::nullopt), 0) << "nothing tells";
  EXPECT_DOUBLE_EQ(alone_on(nodes, 1, 5.0), 0) << "memory bounds it, of which nothing is known";
  EXPECT_DOUBLE_EQ(alone_on(nodes, 1, 1.0), 500);
  nodes[1].alone_ns = 700;
  EXPECT_DOUBLE_EQ(alone_on(nodes, 1, 1.0), 700) << "what was measured counts";
  EXPECT_DOUBLE_EQ(alone_on(nodes, 1, 5.0), 700);
}

// The origin alone takes 10. Of two halves its own took 7, the other node's 2.
TEST(SingleNode, TheLighterHalfMakesNoFasterNode) {
  const Nodes nodes = {{.alone_ns = 14, .part = 0.5}, {.alone_ns = 4, .part = 0.5}};
  EXPECT_NEAR(alone_by_rest(nodes, 1, 10), 10 * 4.0 / 6.0, 1e-9);
  const Nodes like = {{.alone_ns = 14, .part = 0.5}, {.alone_ns = 6, .part = 0.5}};
  EXPECT_NEAR(alone_by_rest(like, 1, 10), 10, 1e-9);
}

TEST(SingleNode, AFasterNodeIsFoundByTheRestOfTheWork) {
  const Nodes nodes = {{.alone_ns = 10, .part = 0.6}, {.alone_ns = 2.5, .part = 0.4}};
  EXPECT_NEAR(alone_by_rest(nodes, 1, 10), 2.5, 1e-9);
}

TEST(SingleNode, WhereTheOriginsPartTookAllOfTheTimeNothingIsPromised) {
  const Nodes nodes = {{.alone_ns = 22, .part = 0.5}, {.alone_ns = 4, .part = 0.5}};
  EXPECT_EQ(alone_by_rest(nodes, 1, 10), 10);
  EXPECT_EQ(alone_by_rest(Nodes(2), 1, 10), 10);
}

}  // namespace
}  // namespace amasia::loops
