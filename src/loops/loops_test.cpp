// SPDX-License-Identifier: Apache-2.0
// Each property is held against a naive model over random loops; a failing run names its seed.
#include "loops/loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace amasia::loops {
namespace {

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }

// Mostly small, sometimes at the extremes.
std::uint64_t any_count(Random& random) {
  switch (below(random, 5)) {
    case 0: return below(random, 4);
    case 1: return below(random, 1000);
    case 2: return ~0ull - below(random, 3);
    case 3: return random();
    default: return below(random, 100000);
  }
}

void expect_tiling(std::vector<Iterations> parts, std::uint64_t count, std::uint64_t seed) {
  std::sort(parts.begin(), parts.end(), [](auto a, auto b) { return a.begin < b.begin; });
  std::uint64_t next = 0;
  for (const Iterations part : parts) {
    ASSERT_EQ(part.begin, next) << "seed " << seed;
    ASSERT_GT(part.end, part.begin) << "seed " << seed;
    next = part.end;
  }
  ASSERT_EQ(next, count) << "seed " << seed;
}

template <typename T>
T near_extremes(Random& random) {
  const T offset = static_cast<T>(below(random, 40));
  switch (below(random, 4)) {
    case 0: return static_cast<T>(std::numeric_limits<T>::max() - offset);
    case 1: return static_cast<T>(std::numeric_limits<T>::min() + offset);
    default: return static_cast<T>(below(random, 80) - 40);
  }
}

template <typename T>
void expect_space_matches_naive_loop() {
  Random random(1);
  int compared = 0;
  while (compared < 4000) {
    const T start = near_extremes<T>(random), end = near_extremes<T>(random);
    using Signed = std::make_signed_t<T>;
    const __int128 distance = __int128{end} - __int128{start};
    const __int128 step128 = distance > 0 ? 1 + below(random, 9) : -1 - int(below(random, 9));
    if ((distance > 0 ? distance : -distance) > 1000) continue;  // the naive loop must be short
    ++compared;
    const Signed step = static_cast<Signed>(step128);
    std::vector<T> naive;
    for (__int128 i = start; step > 0 ? i < end : i > end; i += step) naive.push_back(T(i));
    const Space until = space_until(start, end, step > 0, std::uint64_t(std::int64_t{step}));
    ASSERT_EQ(until.count, naive.size());
    for (std::size_t i = 0; i < naive.size(); ++i) ASSERT_EQ(value_at<T>(until, i), naive[i]);
    std::vector<T> closed;
    for (__int128 i = start; step > 0 ? i <= end : i >= end; i += step) closed.push_back(T(i));
    const Space through = space_through<T>(start, end, step);
    ASSERT_EQ(through.count, closed.size());
    for (std::size_t i = 0; i < closed.size(); ++i) ASSERT_EQ(value_at<T>(through, i), closed[i]);
  }
}

TEST(Space, MatchesTheLoopItStandsForInEveryType) {
  expect_space_matches_naive_loop<std::int32_t>();
  expect_space_matches_naive_loop<std::uint32_t>();
  expect_space_matches_naive_loop<std::int64_t>();
  expect_space_matches_naive_loop<std::uint64_t>();
}

TEST(Space, HoldsAtTheExtremes) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(space_until(kMin, kMax, std::int64_t{1}).count, ~0ull);
  EXPECT_EQ(space_until(kMax, kMin, std::int64_t{-1}).count, ~0ull);
  EXPECT_EQ(space_until(kMax, kMin, kMin).count, 2u);
  EXPECT_EQ(space_until(kMin, kMax, kMax).count, 3u);
  EXPECT_EQ(space_through(kMin, kMax, std::int64_t{1}).count, ~0ull);
  EXPECT_EQ(space_through<std::uint64_t>(0, ~0ull, 1).count, ~0ull);
  EXPECT_EQ(space_through<std::uint32_t>(0, ~0u, 1).count, 1ull << 32);
  EXPECT_EQ(space_until<std::uint64_t>(~0ull, 0, false, 0 - 1ull).count, ~0ull);
  EXPECT_EQ(space_until<std::uint64_t>(~0ull, 0, false, 0 - (~0ull >> 1)).count, 3u);
  EXPECT_EQ(space_until<std::uint64_t>(5, 5, true, 1).count, 0u);
  EXPECT_EQ(value_at<std::int64_t>(space_until(kMin, kMax, kMax), 2), kMax - 1);
}

TEST(StaticShare, TilesEveryLoopInThreadOrder) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const std::uint64_t count = any_count(random);
    const auto threads = static_cast<std::uint32_t>(1 + below(random, 40));
    const std::uint64_t vector_length = 1ull << below(random, 6);
    std::vector<Iterations> blocks, chunk_blocks;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      const Iterations block = static_block(count, thread, threads);
      if (!block.empty()) blocks.push_back(block);
      ASSERT_LE(block.size() - count / threads, 1u);
      const Iterations rounded =
          static_block_of_chunks(count, vector_length, thread, threads);
      if (!rounded.empty()) chunk_blocks.push_back(rounded);
      if (count > 0 && block.end == count && !block.empty()) {
        ASSERT_EQ(last_thread_of_blocks(count, threads), thread);
      }
    }
    expect_tiling(blocks, count, seed);
    expect_tiling(chunk_blocks, count, seed);
  }
}

TEST(StaticShare, ChunksGoRoundTheThreads) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const std::uint64_t count = below(random, 3000);
    const std::uint64_t chunk = 1 + below(random, 20);
    const auto threads = static_cast<std::uint32_t>(1 + below(random, 9));
    std::vector<Iterations> parts;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      for (std::uint64_t round = 0;; ++round) {
        const auto part = static_chunk(count, chunk, thread, threads, round);
        if (!part) break;
        ASSERT_EQ(part->begin / chunk % threads, thread);
        parts.push_back(*part);
        if (part->end < count) continue;
        ASSERT_EQ(last_thread_of_chunks(count, chunk, threads), thread);
      }
    }
    expect_tiling(parts, count, seed);
  }
  EXPECT_FALSE(static_chunk(~0ull, ~0ull - 1, 1, 2, ~0ull));
  EXPECT_EQ(static_chunk(~0ull, ~0ull - 1, 1, 2, 0), (Iterations{~0ull - 1, ~0ull}));
}

TEST(StaticShare, MatchesWhatGccComputesInline) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const std::uint64_t n = below(random, 5000);
    const auto threads = static_cast<std::uint32_t>(1 + below(random, 17));
    for (std::uint32_t i = 0; i < threads; ++i) {
      std::uint64_t q = n / threads, t = n % threads;  // expand_omp_for_static_nochunk
      if (i < t) {
        t = 0;
        ++q;
      }
      const std::uint64_t s0 = q * i + t;
      ASSERT_EQ(static_block(n, i, threads), (Iterations{s0, s0 + q}));
    }
  }
}

// One loop drawn by nodes and threads in a random interleaving, messages taking a random time.
struct LoopRun {
  struct Node {
    NodePool pool;
    std::uint32_t threads = 1;
    int refills_due = 0;
    std::uint32_t done = 0;
    std::vector<std::uint64_t> last_end;
  };

  LoopRun(ScheduleRequest request, std::uint64_t count, std::vector<std::uint32_t> node_threads) {
    std::uint32_t threads = 0;
    for (const auto n : node_threads) threads += n;
    for (std::size_t rank = 0; rank < node_threads.size(); ++rank) {
      const std::uint32_t n = node_threads[rank];
      const FirstDeal deal = first_deal(request, count, node_threads, rank);
      global = GlobalPool(request, count, deal.given, threads);
      nodes.push_back({NodePool(request, {n, threads}, deal.refill), n, 0, 0, {}});
      nodes.back().last_end.assign(n, 0);
    }
  }

  void step(Random& random) {
    Node& node = nodes[below(random, nodes.size())];
    if (node.refills_due > 0 && below(random, 2) == 0) {
      --node.refills_due;
      ++requests;
      node.pool.deliver(global.take(node.threads));
      return;
    }
    const NodePool::Taken taken = node.pool.take();
    ASSERT_TRUE(node.pool.is_valid());
    switch (taken.answer) {
      case NodePool::Answer::kIterationsAndAsk:
        ++node.refills_due;
        [[fallthrough]];
      case NodePool::Answer::kIterations: {
        auto& last = node.last_end[below(random, node.threads)];
        ASSERT_GE(taken.range.begin, last) << "not monotonic";
        last = taken.range.end;
        parts.push_back(taken.range);
        break;
      }
      case NodePool::Answer::kAsk:
        ASSERT_EQ(node.refills_due, 0);
        ++node.refills_due;
        break;
      case NodePool::Answer::kWait:
        ASSERT_GT(node.refills_due, 0);
        break;
      case NodePool::Answer::kDone:
        node.done = 1;
        break;
    }
  }

  bool finished() const {
    return std::all_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.done; });
  }

  GlobalPool global;
  std::vector<Node> nodes;
  std::vector<Iterations> parts;
  std::uint64_t requests = 0;
};

TEST(Pools, HandOutEveryIterationOnceInAnyInterleaving) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const bool guided = below(random, 2) == 0;
    std::uint64_t chunk = below(random, 3) == 0 ? 0 : 1 + below(random, 30);
    std::uint64_t count = any_count(random);
    if (!guided) {  // one part a chunk: keep their number bounded
      if (count / std::max<std::uint64_t>(chunk, 1) > 3000) chunk = count / 1000;
    }
    std::vector<std::uint32_t> node_threads(1 + below(random, 5));
    for (auto& n : node_threads) n = static_cast<std::uint32_t>(1 + below(random, 6));
    const auto kind = guided ? ScheduleKind::kGuided : ScheduleKind::kDynamic;
    LoopRun run({kind, chunk}, count, node_threads);
    for (std::uint64_t steps = 0; !run.finished(); ++steps) {
      ASSERT_LT(steps, 4'000'000u) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(run.step(random)) << "seed " << seed;
    }
    ASSERT_NO_FATAL_FAILURE(expect_tiling(run.parts, count, seed));
    for (const Iterations part : run.parts) {
      if (part.end == count) continue;
      if (guided) {
        ASSERT_GE(part.size(), std::max<std::uint64_t>(chunk, 1)) << "seed " << seed;
      } else {
        ASSERT_EQ(part.size(), std::max<std::uint64_t>(chunk, 1)) << "seed " << seed;
        ASSERT_EQ(part.begin % std::max<std::uint64_t>(chunk, 1), 0u) << "seed " << seed;
      }
    }
  }
}

TEST(Pools, RefillsGrowWithTheLogarithmOfTheLoop) {
  Random random(7);
  LoopRun run({ScheduleKind::kDynamic, 1}, 1'000'000, {2, 2});
  while (!run.finished()) ASSERT_NO_FATAL_FAILURE(run.step(random));
  EXPECT_LT(run.requests, 150u);
  EXPECT_GT(run.requests, 30u);
}

TEST(Pools, ShortLoopNeedsNoRefill) {
  Random random(7);
  LoopRun run({ScheduleKind::kDynamic, 1}, 5, {2, 2, 2});
  while (!run.finished()) ASSERT_NO_FATAL_FAILURE(run.step(random));
  EXPECT_EQ(run.requests, 0u);
  EXPECT_EQ(run.parts.size(), 5u);
}

TEST(Schedules, AreFoundByKindAndName) {
  EXPECT_EQ(schedule_named("guided"), &kGuidedSchedule);
  EXPECT_EQ(schedule_named("fancy"), nullptr);
  EXPECT_EQ(&schedule_of(ScheduleKind::kAuto), &kAutoSchedule);
  EXPECT_EQ(kAutoSchedule.share(10, 3, 1, 2, 0), (Iterations{5, 10}));
  EXPECT_FALSE(kStaticSchedule.pooled());
  EXPECT_TRUE(kDynamicSchedule.pooled());
}

}  // namespace
}  // namespace amasia::loops
