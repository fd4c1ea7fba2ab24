// SPDX-License-Identifier: Apache-2.0
// Each property is held against a naive model over random loops; a failing run names its seed.
#include "loops/loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
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
  EXPECT_EQ(space_through(std::int64_t{kMin + 1}, kMax, std::int64_t{1}).count, ~0ull);
  EXPECT_EQ(space_through<std::uint64_t>(0, ~0ull - 1, 1).count, ~0ull);
  EXPECT_EQ(space_through<std::uint32_t>(0, ~0u - 1, 1).count, ~0u);
  EXPECT_EQ(space_through<std::uint32_t>(0, ~0u, 2).count, 1ull << 31);
  EXPECT_EQ(space_until<std::uint64_t>(~0ull, 0, false, 0 - 1ull).count, ~0ull);
  EXPECT_EQ(space_until<std::uint64_t>(~0ull, 0, false, 0 - (~0ull >> 1)).count, 3u);
  EXPECT_EQ(space_until<std::uint64_t>(5, 5, true, 1).count, 0u);
  EXPECT_EQ(value_at<std::int64_t>(space_until(kMin, kMax, kMax), 2), kMax - 1);
}

// What flang says of an empty loop: it counts iterations in an unsigned type, and says 0 to n - 1.
TEST(Space, ThroughAllValuesIsEmpty) {
  EXPECT_EQ(space_through<std::uint32_t>(0, ~0u, 1).count, 0u);
  EXPECT_EQ(space_through<std::uint64_t>(0, ~0ull, 1).count, 0u);
  EXPECT_EQ(space_through<std::uint32_t>(~0u, 0, -1).count, 0u);
  constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(space_through<std::int32_t>(kMin, kMax, 1).count, 0u);
  EXPECT_EQ(space_through<std::int32_t>(0, -1, 1).count, 0u);
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

// One loop drawn by nodes and threads in a random interleaving, messages taking a random time, in
// any order; iterations take no time but what reports are made to say.
struct LoopRun {
  struct Node {
    NodePool pool;
    std::vector<Refill> arriving;
    bool asked = false;  // the request has not reached the origin
    Report news;
    std::vector<std::uint64_t> last_end;
    std::vector<std::uint64_t> in_hand;
    std::vector<bool> done;
  };

  LoopRun(const LoopTerms& loop, const std::vector<Power>& team)
      : terms(loop), dealer(loop, team), powers(team) {
    for (std::size_t rank = 0; rank < team.size(); ++rank) {
      const std::uint32_t n = team[rank].threads;
      Node node;
      node.pool = NodePool(loop.schedule, loop.count, n, first_refill(loop, team, rank));
      node.last_end.assign(n, 0);
      node.in_hand.assign(n, 0);
      node.done.assign(n, false);
      nodes.push_back(node);
      costs.push_back({1 + rank * 7 % 10, rank % 3});
    }
  }

  void step(Random& random) {
    const std::size_t rank = below(random, nodes.size());
    Node& node = nodes[rank];
    if (node.asked && below(random, 2) == 0) {
      node.asked = false;
      ++requests;
      std::vector<Grant> grants;
      dealer.ask(rank, node.news, grants);
      node.news = {};
      for (const Grant& grant : grants) nodes[grant.rank].arriving.push_back(grant.refill);
      return;
    }
    if (below(random, 50) == 0) {
      std::vector<Grant> grants;
      dealer.take_over(rank, grants);
      for (const Grant& grant : grants) nodes[grant.rank].arriving.push_back(grant.refill);
      return;
    }
    if (!node.arriving.empty() && below(random, 2) == 0) {
      ASSERT_EQ(node.arriving.size(), 1u);
      node.pool.deliver(node.arriving[0]);
      node.arriving.clear();
      return;
    }
    take(random, node, below(random, node.done.size()), costs[rank]);
  }

  void take(Random& random, Node& node, std::size_t thread,
            std::pair<std::size_t, std::size_t> ns) {
    if (node.done[thread]) return;
    const std::uint64_t executed = std::exchange(node.in_hand[thread], 0);
    if (executed > 0) {
      const std::uint64_t some = executed % 100000;  // keeps sums small
      node.news += {executed, some * ns.first * (1 + below(random, 3)), some * ns.second, 0};
    }
    const NodePool::Taken taken = node.pool.take(executed > 0);
    ASSERT_TRUE(node.pool.is_valid());
    switch (taken.answer) {
      case NodePool::Answer::kIterationsAndAsk:
        node.asked = true;
        [[fallthrough]];
      case NodePool::Answer::kIterations: {
        auto& last = node.last_end[thread];
        ASSERT_TRUE(taken.range.begin >= last || schedule_of(terms.schedule.kind).probes());
        ASSERT_NE(last, terms.count) << "what lastprivate keeps is of the last iteration";
        last = taken.range.end;
        node.in_hand[thread] = taken.range.size();
        parts.push_back(taken.range);
        break;
      }
      case NodePool::Answer::kAsk:
        ASSERT_FALSE(node.asked);
        node.asked = true;
        break;
      case NodePool::Answer::kWait:
        break;
      case NodePool::Answer::kDone:
        node.done[thread] = true;
        break;
    }
  }

  bool finished() const {
    return std::all_of(nodes.begin(), nodes.end(), [](const Node& n) {
      return std::all_of(n.done.begin(), n.done.end(), [](bool done) { return done; });
    });
  }

  LoopTerms terms;
  Dealer dealer;
  std::vector<Power> powers;
  std::vector<Node> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> costs;
  std::vector<Iterations> parts;
  std::uint64_t requests = 0;
};

LoopTerms terms_of(ScheduleKind kind, std::uint64_t chunk, std::uint64_t count) {
  LoopTerms terms;
  terms.schedule = {kind, chunk};
  terms.count = count;
  return terms;
}

std::vector<Power> any_team(Random& random, bool known) {
  std::vector<Power> powers(1 + below(random, below(random, 10) == 0 ? base::kMaxNodes : 5));
  for (Power& power : powers) {
    power.threads = static_cast<std::uint32_t>(1 + below(random, 6));
    if (known) power.speed = static_cast<std::uint32_t>(below(random, 5) * kEvenSpeed);
  }
  if (!is_valid(powers)) powers[0].speed = kEvenSpeed;
  return powers;
}

void expect_chunks_kept(const LoopRun& run, std::uint64_t seed) {
  const std::uint64_t chunk = std::max<std::uint64_t>(run.terms.schedule.chunk, 1);
  const bool dynamic = run.terms.schedule.kind == ScheduleKind::kDynamic;
  for (const Iterations part : run.parts) {
    if (part.end == run.terms.count) continue;
    ASSERT_GE(part.size(), chunk) << "seed " << seed;
    if (!dynamic) continue;
    ASSERT_EQ(part.size(), chunk) << "seed " << seed;
    ASSERT_EQ(part.begin % chunk, 0u) << "seed " << seed;
  }
}

TEST(Pools, HandOutEveryIterationOnceInAnyInterleaving) {
  constexpr std::array kKinds = {ScheduleKind::kDynamic, ScheduleKind::kGuided,
                                 ScheduleKind::kFac2,    ScheduleKind::kWf,
                                 ScheduleKind::kAwf,     ScheduleKind::kHetProbe,
                                 ScheduleKind::kHetProbeI};
  for (std::uint64_t seed = 0; seed < 2500; ++seed) {
    Random random(seed);
    const ScheduleKind kind = kKinds[below(random, kKinds.size())];
    std::uint64_t chunk = below(random, 3) == 0 ? 0 : 1 + below(random, 30);
    std::uint64_t count = any_count(random);
    // One part a chunk: keep their number bounded.
    if (kind == ScheduleKind::kDynamic && count / std::max<std::uint64_t>(chunk, 1) > 3000) {
      chunk = count / 1000;
    }
    LoopTerms terms = terms_of(kind, chunk, count);
    terms.known = below(random, 2) == 0;
    terms.by_region = terms.known && kind == ScheduleKind::kHetProbeI && below(random, 2) == 0;
    terms.first = below(random, kMostGrain);
    terms.rules.probe_percent = static_cast<std::uint32_t>(1 + below(random, 50));
    terms.rules.reprobe_percent = static_cast<std::uint32_t>(1 + below(random, 100));
    LoopRun run(terms, any_team(random, terms.known));
    for (std::uint64_t steps = 0; !run.finished(); ++steps) {
      ASSERT_LT(steps, 4'000'000u) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(run.step(random)) << "seed " << seed;
      if (run.dealer.probe() != nullptr) {
        ASSERT_TRUE(run.dealer.probe()->is_valid()) << "seed " << seed;
      }
    }
    ASSERT_EQ(run.dealer.remaining(), 0u) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(expect_tiling(run.parts, count, seed));
    if (schedule_of(kind).probes()) continue;
    ASSERT_NO_FATAL_FAILURE(expect_chunks_kept(run, seed));
  }
}

// Loops of a few iterations leave nodes waiting for the last ones of others.
TEST(Pools, ShortLoopsThatProbeAgainEndInAnyInterleaving) {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    LoopTerms terms = terms_of(ScheduleKind::kHetProbeI, 0, 1 + below(random, 60));
    terms.known = below(random, 4) == 0;
    terms.by_region = terms.known && below(random, 2) == 0;
    std::vector<Power> powers(2 + below(random, 4));
    for (Power& power : powers) power = {static_cast<std::uint32_t>(1 + below(random, 2))};
    LoopRun run(terms, powers);
    for (auto& [compute, stall] : run.costs) compute = 1 + below(random, 1000);
    for (std::uint64_t steps = 0; !run.finished(); ++steps) {
      ASSERT_LT(steps, 100'000u) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(run.step(random)) << "seed " << seed;
      ASSERT_TRUE(run.dealer.probe()->is_valid()) << "seed " << seed;
    }
    ASSERT_NO_FATAL_FAILURE(expect_tiling(run.parts, terms.count, seed));
  }
}

TEST(Pools, RefillsGrowWithTheLogarithmOfTheLoop) {
  Random random(7);
  LoopRun run(terms_of(ScheduleKind::kDynamic, 1, 1'000'000), {{2}, {2}});
  while (!run.finished()) ASSERT_NO_FATAL_FAILURE(run.step(random));
  EXPECT_LT(run.requests, 150u);
  EXPECT_GT(run.requests, 30u);
}

TEST(Pools, ShortLoopNeedsNoRefill) {
  for (const ScheduleKind kind : {ScheduleKind::kDynamic, ScheduleKind::kHetProbe}) {
    Random random(7);
    LoopRun run(terms_of(kind, 1, 5), {{2}, {2}, {2}});
    while (!run.finished()) ASSERT_NO_FATAL_FAILURE(run.step(random));
    EXPECT_EQ(run.requests, 0u);
    EXPECT_EQ(run.parts.size(), 5u);
  }
}

TEST(Pools, NodesThatAreNotUsedGetNothing) {
  for (const ScheduleKind kind : {ScheduleKind::kGuided, ScheduleKind::kFac2, ScheduleKind::kWf,
                                  ScheduleKind::kAwf, ScheduleKind::kHetProbe}) {
    LoopTerms terms = terms_of(kind, 0, 1000);
    terms.known = true;
    const std::vector<Power> powers = {{2, kEvenSpeed}, {3, 0}};
    EXPECT_TRUE(first_refill(terms, powers, 1).range.empty());
    std::vector<Grant> grants;
    Dealer dealer(terms, powers);
    if (!first_refill(terms, powers, 1).more) continue;
    dealer.ask(1, {}, grants);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_TRUE(grants[0].refill.range.empty());
    EXPECT_FALSE(grants[0].refill.more);
  }
}

TEST(Pools, LoopsThatAreToBeMonotonicAreNotProbed) {
  EXPECT_EQ(carried_out({ScheduleKind::kHetProbe, 3, true}).kind, ScheduleKind::kAwf);
  EXPECT_EQ(carried_out({ScheduleKind::kHetProbeI, 3, true}).chunk, 3u);
  EXPECT_EQ(carried_out({ScheduleKind::kHetProbe, 3, false}).kind, ScheduleKind::kHetProbe);
  EXPECT_EQ(carried_out({ScheduleKind::kGuided, 3, true}).kind, ScheduleKind::kGuided);
}

TEST(Schedules, AreFoundByKindAndName) {
  EXPECT_EQ(schedule_named("guided"), &kGuidedSchedule);
  EXPECT_EQ(schedule_named("fancy"), nullptr);
  EXPECT_EQ(&schedule_of(ScheduleKind::kAuto), &kAutoSchedule);
  EXPECT_EQ(kAutoSchedule.share(10, 3, 1, 2, 0), (Iterations{5, 10}));
  EXPECT_FALSE(kStaticSchedule.pooled());
  EXPECT_TRUE(kDynamicSchedule.pooled());
  EXPECT_FALSE(kDynamicSchedule.probes());
  EXPECT_TRUE(schedule_named("hetprobe-i")->probes());
}

}  // namespace
}  // namespace amasia::loops
