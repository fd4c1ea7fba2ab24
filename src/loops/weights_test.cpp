// SPDX-License-Identifier: Apache-2.0
// Each property is held against a naive model over random teams; a failing run names its seed.
#include "loops/weights.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "loops/static_share.hpp"

namespace amasia::loops {
namespace {

using Random = std::mt19937_64;
using Wide = unsigned __int128;

std::uint64_t any_count(Random& random) {
  switch (random() % 5) {
    case 0: return random() % 4;
    case 1: return random() % 1000;
    case 2: return ~0ull - random() % 3;
    case 3: return random();
    default: return random() % 100000;
  }
}

std::uint32_t any_speed(Random& random) {
  switch (random() % 6) {
    case 0: return 0;
    case 1: return static_cast<std::uint32_t>(1 + random() % 10);
    case 2: return kMaxSpeed;
    case 3: return kEvenSpeed;
    default: return static_cast<std::uint32_t>(random() % kMaxSpeed);
  }
}

std::vector<Power> any_powers(Random& random) {
  std::vector<Power> powers(1 + random() % (random() % 8 == 0 ? base::kMaxNodes : 6));
  for (Power& power : powers) {
    power = {static_cast<std::uint32_t>(1 + random() % 9), any_speed(random)};
  }
  if (!is_valid(powers)) powers[random() % powers.size()].speed = kEvenSpeed;
  return powers;
}

std::vector<std::uint32_t> speed_of_each_thread(const std::vector<Power>& powers) {
  std::vector<std::uint32_t> speeds;
  for (const Power& power : powers) speeds.insert(speeds.end(), power.threads, power.speed);
  return speeds;
}

// The definition, thread by thread.
std::vector<std::uint64_t> naive_sizes(std::uint64_t count, const std::vector<Power>& powers) {
  const std::vector<std::uint32_t> speeds = speed_of_each_thread(powers);
  std::uint64_t total = 0, left = count;
  for (const std::uint32_t speed : speeds) total += speed;
  std::vector<std::uint64_t> sizes;
  for (const std::uint32_t speed : speeds) {
    sizes.push_back(static_cast<std::uint64_t>(Wide{count} * speed / total));
    left -= sizes.back();
  }
  EXPECT_LT(left, speeds.size());
  for (; left > 0; --left) {
    std::size_t best = speeds.size();
    for (std::size_t t = 0; t < speeds.size(); ++t) {
      if (speeds[t] == 0) continue;
      if (best == speeds.size() ||
          Wide{sizes[t] + 1} * speeds[best] < Wide{sizes[best] + 1} * speeds[t]) {
        best = t;
      }
    }
    ++sizes[best];
  }
  return sizes;
}

TEST(Weights, BlocksTileTheLoopInThreadOrderAsDefined) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const std::uint64_t count = any_count(random);
    const std::vector<Power> powers = any_powers(random);
    const std::vector<std::uint64_t> sizes = naive_sizes(count, powers);
    std::uint64_t next = 0;
    std::uint32_t thread = 0;
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      const Iterations node = weighted_node_block(count, powers, rank);
      ASSERT_EQ(node.begin, next) << "seed " << seed;
      for (std::uint32_t local = 0; local < powers[rank].threads; ++local, ++thread) {
        const Iterations block = weighted_block(count, powers, rank, local);
        ASSERT_EQ(block.begin, next) << "seed " << seed;
        ASSERT_EQ(block.size(), sizes[thread]) << "seed " << seed;
        next = block.end;
      }
      ASSERT_EQ(node.end, next) << "seed " << seed;
      ASSERT_TRUE(powers[rank].speed > 0 || node.empty()) << "seed " << seed;
    }
    ASSERT_EQ(next, count) << "seed " << seed;
  }
}

TEST(Weights, EqualSpeedsGiveTheSplitOfStaticLoops) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const std::uint64_t count = any_count(random);
    std::vector<Power> powers = any_powers(random);
    const auto speed = static_cast<std::uint32_t>(1 + random() % kMaxSpeed);
    std::uint32_t threads = 0;
    for (Power& power : powers) {
      power.speed = speed;
      threads += power.threads;
    }
    ASSERT_TRUE(is_even(powers));
    std::uint32_t thread = 0;
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      for (std::uint32_t local = 0; local < powers[rank].threads; ++local, ++thread) {
        ASSERT_EQ(weighted_block(count, powers, rank, local),
                  static_block(count, thread, threads)) << "seed " << seed;
      }
    }
  }
}

// All ways to give `left` iterations to the threads from `thread` on; the least that the longest
// takes, in units of 1 / (product of speeds).
std::uint64_t least_longest(std::uint64_t left, const std::vector<std::uint32_t>& speeds,
                            std::size_t thread) {
  std::uint64_t others = 1;
  for (const std::uint32_t speed : speeds) others *= speed;
  others /= speeds[thread];
  if (thread + 1 == speeds.size()) return left * others;
  std::uint64_t best = ~0ull;
  for (std::uint64_t own = 0; own <= left; ++own) {
    best = std::min(best, std::max(own * others, least_longest(left - own, speeds, thread + 1)));
  }
  return best;
}

TEST(Weights, NoOtherSplitEndsEarlier) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const std::uint64_t count = 1 + random() % 9;
    std::vector<Power> powers(2 + random() % 2);
    for (Power& power : powers) {
      power = {static_cast<std::uint32_t>(1 + random() % 2),
               static_cast<std::uint32_t>(1 + random() % 10)};
    }
    const std::vector<std::uint32_t> speeds = speed_of_each_thread(powers);
    std::uint64_t product = 1, longest = 0;
    for (const std::uint32_t speed : speeds) product *= speed;
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      for (std::uint32_t local = 0; local < powers[rank].threads; ++local) {
        const std::uint64_t size = weighted_block(count, powers, rank, local).size();
        longest = std::max(longest, size * (product / powers[rank].speed));
      }
    }
    ASSERT_EQ(longest, least_longest(count, speeds, 0)) << "seed " << seed;
  }
}

TEST(Weights, TellWhatCannotBeShared) {
  EXPECT_FALSE(is_valid(std::vector<Power>{}));
  EXPECT_FALSE(is_valid(std::vector<Power>{{2, 0}, {3, 0}}));
  EXPECT_FALSE(is_valid(std::vector<Power>{{2, kMaxSpeed + 1}}));
  EXPECT_FALSE(is_valid(std::vector<Power>(base::kMaxNodes + 1, Power{1, 1})));
  EXPECT_TRUE(is_valid(std::vector<Power>{{2, 0}, {3, 1}}));
  EXPECT_FALSE(is_even(std::vector<Power>{{2, 0}, {3, 1}}));
}

TEST(StaticShare, GivesEachThreadOneWhereThereAreNoMoreIterationsThanThreads) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const std::vector<Power> powers = any_powers(random);
    std::uint32_t threads = 0;
    for (const Power& power : powers) threads += power.threads;
    const std::uint64_t count = random() % (2 * threads + 1);
    std::uint32_t thread = 0;
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      for (std::uint32_t local = 0; local < powers[rank].threads; ++local, ++thread) {
        bool by_speed = false;
        const Iterations share = static_share({.count = count}, powers, rank, local, &by_speed);
        ASSERT_EQ(by_speed, count > threads) << "seed " << seed;
        if (by_speed) {
          ASSERT_EQ(share, weighted_block(count, powers, rank, local)) << "seed " << seed;
        } else {
          ASSERT_EQ(share.size(), thread < count ? 1u : 0u) << "seed " << seed;
          if (thread < count) {
            ASSERT_EQ(share.begin, thread) << "seed " << seed;
          }
        }
      }
    }
  }
}

// For each node what its threads do together.
std::vector<Iterations> shares_of_nodes(const Space& space, const std::vector<Power>& powers) {
  std::vector<Iterations> out;
  std::uint64_t next = 0;
  for (std::size_t rank = 0; rank < powers.size(); ++rank) {
    const std::uint64_t begin = next;
    std::uint64_t most = 0, least = space.count;
    for (std::uint32_t local = 0; local < powers[rank].threads; ++local) {
      bool by_speed = false;
      const Iterations share = static_share(space, powers, rank, local, &by_speed);
      EXPECT_EQ(share.begin, next);
      next = share.end;
      most = std::max(most, share.size());
      least = std::min(least, share.size());
    }
    EXPECT_LE(most - least, 1u) << "the threads of a node are alike";
    out.push_back({begin, next});
  }
  EXPECT_EQ(next, space.count);
  return out;
}

TEST(StaticShare, NodesMeetBetweenPages) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<Power> powers = any_powers(random);
    const bool coarse = random() % 2 == 0;
    if (coarse) powers.back().seam = Seam::kCoarse;
    const std::uint64_t parts = coarse ? 16 : 64;  // of the smallest share
    std::uint64_t threads = 0, least = ~0ull;
    for (const Power& power : powers) threads += power.threads;
    const Space space{.first = random() % 2 == 0 ? 0 : random() % 3000,
                      .count = std::max(any_count(random), threads + 1)};
    const std::vector<Iterations> nodes = shares_of_nodes(space, powers);
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      const std::uint64_t size = weighted_node_block(space.count, powers, rank).size();
      if (powers[rank].speed > 0) least = std::min(least, size);
    }
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      const std::uint64_t size = weighted_node_block(space.count, powers, rank).size();
      const std::uint64_t shared = nodes[rank].size();
      EXPECT_LE(std::max(size, shared) - std::min(size, shared), 2 * (least / parts));
      const std::uint64_t seam = nodes[rank].begin;
      if (seam == 0 || seam == space.count) continue;
      const std::uint64_t grain = least >= parts / 2 * 1024  ? 1024
                                  : least >= parts / 2 * 512 ? 512
                                                             : 1;
      EXPECT_EQ((space.first + seam) % grain, 0u);
    }
  }
}

// Programs show how many iterations a thread has, and rows of a matrix are dear.
TEST(StaticShare, NodesThatAreAlikeShareFewIterationsEvenly) {
  std::vector<Power> powers(2, Power{.threads = 2, .seam = Seam::kCoarse});
  EXPECT_EQ(shares_of_nodes({.count = 400}, powers)[1].begin, 200u);
  EXPECT_EQ(shares_of_nodes({.count = 2044}, powers)[1].begin, 1022u);
  EXPECT_EQ(shares_of_nodes({.count = 2100}, powers)[1].begin, 1024u);
}

// A sweep over the inner points of a grid takes those that the sweep over all of them left.
TEST(StaticShare, LoopsOverTheSameElementsMeetAtTheSame) {
  const std::vector<Power> powers = {{1, 3}, {2, 1}};
  const std::vector<Iterations> all = shares_of_nodes({.count = 100'000}, powers);
  const std::vector<Iterations> inner = shares_of_nodes({.first = 1, .count = 99'998}, powers);
  EXPECT_EQ(all[1].begin, inner[1].begin + 1);
  EXPECT_EQ(all[1].begin % 512, 0u);
  EXPECT_NEAR(static_cast<double>(all[1].begin), 60'000, 512);
}

TEST(UnweightedBlocks, GiveNoThreadASecondPartWhileAnotherHasNone) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const std::vector<Power> powers = any_powers(random);
    const std::uint64_t count = random() % 40;
    std::uint64_t next = 0, most = 0, least = count;
    for (std::size_t rank = 0; rank < powers.size(); ++rank) {
      for (std::uint32_t thread = 0; thread < powers[rank].threads; ++thread) {
        const Iterations block = unweighted_block(count, powers, rank, thread);
        EXPECT_TRUE(block.empty() || block.begin == next) << "seed " << seed;
        next = std::max(next, block.end);
        if (powers[rank].speed == 0) {
          EXPECT_TRUE(block.empty()) << "seed " << seed;
          continue;
        }
        most = std::max(most, block.size());
        least = std::min(least, block.size());
      }
    }
    EXPECT_EQ(next, count) << "seed " << seed;
    EXPECT_LE(most, least + 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace amasia::loops
