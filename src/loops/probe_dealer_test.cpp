// SPDX-License-Identifier: Apache-2.0
// Who gets what of a loop whose nodes' speeds are known from earlier runs.
#include "loops/probe_dealer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace amasia::loops {
namespace {

constexpr std::uint64_t kCount = 100'000;

LoopTerms known_loop() {
  LoopTerms terms;
  terms.schedule = {ScheduleKind::kHetProbeI, 0};
  terms.count = kCount;
  terms.known = true;
  return terms;
}

// Nodes of one thread, whose iterations take `cost(i)` on all; the one that ends first asks.
struct Execution {
  std::array<Iterations, 2> hand;
  std::array<double, 2> time{};
  std::array<bool, 2> more{true, true};
  std::vector<std::pair<std::size_t, Iterations>> done;

  template <typename Cost>
  void finish(ProbeDealer& dealer, Cost cost) {
    std::array<Report, 2> news{};
    for (int steps = 0; more[0] || more[1] || !hand[0].empty() || !hand[1].empty(); ++steps) {
      ASSERT_LT(steps, 1000);
      const bool has_work[2] = {!hand[0].empty() || more[0], !hand[1].empty() || more[1]};
      const std::size_t rank = !has_work[1] || (has_work[0] && time[0] <= time[1]) ? 0 : 1;
      double took = 0;
      for (std::uint64_t i = hand[rank].begin; i < hand[rank].end; ++i) took += cost(i);
      time[rank] += took;
      if (!hand[rank].empty()) done.emplace_back(rank, hand[rank]);
      news[rank] += {hand[rank].size(), static_cast<std::uint64_t>(took), 0, 0};
      hand[rank] = {};
      if (!more[rank]) continue;
      more[rank] = false;  // until it is answered
      std::vector<Grant> grants;
      dealer.ask(rank, std::exchange(news[rank], {}), grants);
      for (const Grant& grant : grants) {
        hand[grant.rank] = grant.refill.range;
        more[grant.rank] = grant.refill.more;
        time[grant.rank] = std::max(time[grant.rank], time[rank]);
      }
    }
  }
  std::uint64_t of(std::size_t rank) const {
    std::uint64_t sum = 0;
    for (const auto& [who, range] : done) sum += who == rank ? range.size() : 0;
    return sum;
  }
};

Execution run_of(const std::vector<Power>& powers, double (*cost)(std::uint64_t),
                 const LoopTerms& terms = known_loop()) {
  ProbeDealer dealer(terms, powers);
  Execution run;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const Refill refill = first_probe(terms, powers, rank);
    run.hand[rank] = refill.range;
    run.more[rank] = refill.more;
  }
  run.finish(dealer, cost);
  EXPECT_EQ(run.of(0) + run.of(1), kCount);
  return run;
}

// Halves of the time, of iterations that grow: what the first of each node tell of the rest would
// move more than it saves.
TEST(ProbeDealer, WhoIsKnownKeepsItsTerritory) {
  const auto growing = [](std::uint64_t i) { return 100.0 + static_cast<double>(i) / 100; };
  constexpr auto kOrigin = static_cast<std::uint32_t>(0.62 / 0.38 * kEvenSpeed);
  const Execution run = run_of({{1, kOrigin}, {1, kEvenSpeed}}, growing);
  std::uint64_t end = 0;
  for (const auto& [rank, range] : run.done) {
    if (rank == 0) end = std::max(end, range.end);
  }
  for (const auto& [rank, range] : run.done) {
    EXPECT_TRUE(rank == 0 || range.begin >= end) << "iterations changed sides";
  }
  EXPECT_EQ(end % 1024, 0u) << "nodes meet within a page";
}

// One node has become four times as slow as it was.
TEST(ProbeDealer, WhatWouldLeaveANodeIdleForLongMoves) {
  const auto slow_end = [](std::uint64_t i) { return i < kCount / 2 ? 100.0 : 400.0; };
  const Execution run = run_of({{1, kEvenSpeed}, {1, kEvenSpeed}}, slow_end);
  EXPECT_GT(run.of(0), kCount * 6 / 10);
  EXPECT_LT(std::max(run.time[0], run.time[1]), 0.8 * kCount / 2 * 400);
}

LoopTerms static_loop() {
  LoopTerms terms = known_loop();
  terms.by_region = true;
  return terms;
}

// What is alike stays where a static loop would have it, to the iteration.
TEST(ProbeDealer, OfAStaticLoopEachNodeHasItsShare) {
  const auto even = [](std::uint64_t) { return 100.0; };
  const std::vector<Power> powers = {{1, kEvenSpeed}, {1, kEvenSpeed}};
  LoopTerms terms = static_loop();
  for (const std::uint64_t first : {0, 1, 700}) {
    terms.first = first;
    bool by_speed = false;
    const Iterations share = static_share({first, 1, kCount}, powers, 0, 0, &by_speed);
    for (const auto& [rank, range] : run_of(powers, even, terms).done) {
      EXPECT_TRUE(rank == 0 ? range.end <= share.end : range.begin >= share.end);
    }
  }
}

// A triangle, and one node in the dark about a third of its speed: the rest is evened out.
TEST(ProbeDealer, OfAStaticLoopWhatIsUnevenIsTakenFromOthers) {
  const auto rising = [](std::uint64_t i) { return static_cast<double>(i); };
  const Execution run = run_of({{1, kEvenSpeed}, {1, kEvenSpeed}}, rising, static_loop());
  const double even = 0.5 * kCount / 2 * kCount;
  EXPECT_LT(std::max(run.time[0], run.time[1]), 1.04 * even);
}

}  // namespace
}  // namespace amasia::loops
