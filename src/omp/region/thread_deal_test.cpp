// SPDX-License-Identifier: Apache-2.0
#include "omp/region/thread_deal.hpp"

#include <gtest/gtest.h>

#include <random>

namespace amasia::omp {
namespace {

std::vector<std::uint32_t> threads_in(std::span<const NodeShare> shares, std::size_t nodes) {
  std::vector<std::uint32_t> threads(nodes, 0);
  std::uint32_t offset = 0;
  for (const NodeShare& share : shares) {
    EXPECT_EQ(share.offset, offset);
    offset += share.threads;
    threads[share.node.value] = share.threads;
  }
  return threads;
}

using Threads = std::vector<std::uint32_t>;

TEST(ThreadDeal, LikeNodesHaveAThreadPerCore) {
  const Threads capacity{2, 2};
  const std::vector<double> powers{2, 2};
  EXPECT_EQ(threads_in(deal_by_power({4, false, capacity, powers}), 2), (Threads{2, 2}));
  EXPECT_EQ(threads_to_divide(capacity, std::vector<double>{1, 1}), 4u);
  const auto shares = deal_by_core({4, true, capacity, powers});
  EXPECT_EQ(shares[0].speed, loops::kEvenSpeed);
  EXPECT_EQ(shares[1].speed, loops::kEvenSpeed);
}

TEST(ThreadDeal, AFastCoreHasSeveralThreads) {
  EXPECT_EQ(threads_to_divide(Threads{1, 1}, std::vector<double>{1, 0.5}), 3u);
  EXPECT_EQ(threads_to_divide(Threads{1, 1}, std::vector<double>{1, 0.33}), 4u);
  EXPECT_EQ(threads_to_divide(Threads{1, 1, 1, 1}, std::vector<double>{1, 0.5, 0.33, 0.25}), 8u);
  // What may be noise is none of this.
  EXPECT_EQ(threads_to_divide(Threads{4, 4}, std::vector<double>{1, 0.87}), 8u);
  const Threads capacity{16, 96};
  const std::vector<double> powers{16 * 3, 96};
  EXPECT_EQ(threads_in(deal_by_power({144, false, capacity, powers}), 2), (Threads{48, 96}));
  // As many cores are at work where the nodes turn out to be alike.
  EXPECT_EQ(threads_in(deal_by_power({144, false, capacity, std::vector<double>{16, 96}}), 2),
            (Threads{16, 96}));
}

TEST(ThreadDeal, SpeedsFollowPowers) {
  const auto shares = deal_by_core({3, true, Threads{1, 2}, std::vector<double>{2, 1}});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].speed, loops::kEvenSpeed);
  EXPECT_EQ(shares[1].speed, loops::kEvenSpeed / 4);
}

TEST(ThreadDeal, TheOriginsThreadStaysWhereAnotherNodeDoesItAll) {
  const Threads capacity{4, 2, 2};
  const std::vector<double> powers{0, 0, 1};
  const auto free = deal_by_core({8, false, capacity, powers});
  EXPECT_EQ(threads_in(free, 3), (Threads{1, 0, 2}));
  EXPECT_EQ(free[0].speed, 0u);
  EXPECT_EQ(free[1].speed, loops::kEvenSpeed);
  // A team that has to keep its size keeps its idle threads off the cores that work.
  const auto exact = deal_by_core({8, true, capacity, powers});
  EXPECT_EQ(threads_in(exact, 3), (Threads{5, 0, 3})) << "in proportion to cores";
  EXPECT_EQ(exact[0].speed, 0u);
}

TEST(ThreadDeal, NodesWithoutPowerAreLeftOut) {
  const Threads capacity{1, 1, 1};
  const std::vector<double> powers{1, 0, 1};
  EXPECT_EQ(threads_in(deal_by_core({3, false, capacity, powers}), 3), (Threads{1, 0, 1}));
  EXPECT_EQ(threads_in(deal_by_core({3, true, capacity, powers}), 3), (Threads{1, 0, 2}));
  EXPECT_EQ(threads_in(deal_by_power({3, true, capacity, powers}), 3), (Threads{2, 0, 1}));
  EXPECT_EQ(threads_in(deal_by_power({3, false, capacity, powers}), 3), (Threads{1, 0, 1}));
}

TEST(ThreadDeal, ExactTeamsHaveTheirSizeAndTheOriginsThread) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t nodes = 1 + random() % 6;
    Threads capacity(nodes);
    std::vector<double> powers(nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      capacity[i] = 1 + random() % 5;
      powers[i] = i > 0 && random() % 4 == 0 ? 0 : 0.05 + random() % 100;
    }
    const std::uint32_t team = 1 + random() % 30;
    for (const bool exact : {true, false}) {
      for (const auto& shares : {deal_by_core({team, exact, capacity, powers}),
                                 deal_by_power({team, exact, capacity, powers})}) {
        const Threads threads = threads_in(shares, nodes);
        std::uint32_t all = 0;
        for (std::size_t i = 0; i < nodes; ++i) {
          all += threads[i];
          EXPECT_TRUE(powers[i] > 0 || threads[i] == 0) << "round " << round;
        }
        EXPECT_GT(threads[0], 0u) << "round " << round;
        EXPECT_LE(all, team) << "round " << round;
        if (exact) {
          EXPECT_EQ(all, team) << "round " << round;
        }
      }
    }
  }
}

}  // namespace
}  // namespace amasia::omp
