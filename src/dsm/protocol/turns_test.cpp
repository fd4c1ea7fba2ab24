// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/turns.hpp"

#include <gtest/gtest.h>

#include <random>

namespace amasia::dsm::protocol {
namespace {

constexpr Nanos kMs = base::kMillisecond;
// What a thread waits beyond each wait that its engine sees.
constexpr Nanos kUnseen = 20 * base::kMicrosecond;

TEST(Turns, EveryNodeHasItsTurnWithin100Milliseconds) {
  for (std::uint32_t nodes = 1; nodes <= base::kMaxNodes; ++nodes) {
    const TurnSchedule schedule(nodes);
    EXPECT_LT(usual_turn(nodes) * nodes, 100 * kMs);
    EXPECT_LE(longest_turn(nodes) * nodes, 2 * base::kSecond);
    Nanos at = 0;
    for (std::uint32_t turn = 0; turn < 2 * nodes; ++turn) {
      const Turn now = schedule.at(at);
      EXPECT_EQ(now.owner.value, turn % nodes);
      EXPECT_FALSE(now.stretched);
      EXPECT_EQ(schedule.at(now.end - 1).owner, now.owner);
      at = now.end;
    }
  }
}

TEST(Turns, AStretchHoldsFromItsBeginToItsEnd) {
  TurnSchedule schedule(3);
  const Nanos usual = usual_turn(3);
  schedule.adopt({1000 * kMs, 2000 * kMs, 100 * kMs});
  EXPECT_EQ(schedule.at(1000 * kMs - 1).length(), usual);
  const Turn second = schedule.at(1150 * kMs);
  EXPECT_EQ(second.owner, NodeId{1});
  EXPECT_EQ(second.begin, 1100 * kMs);
  EXPECT_EQ(second.end, 1200 * kMs);
  EXPECT_TRUE(second.stretched);
  EXPECT_EQ(schedule.at(2000 * kMs).length(), usual);
}

TEST(Turns, TheStretchBeforeHoldsUntilTheNextBegins) {
  TurnSchedule schedule(2);
  schedule.adopt({1000 * kMs, 3000 * kMs, 100 * kMs});
  schedule.adopt({1500 * kMs, 2000 * kMs, 250 * kMs});
  EXPECT_EQ(schedule.at(1499 * kMs).length(), 100 * kMs);
  EXPECT_EQ(schedule.at(1500 * kMs).length(), 250 * kMs);
  EXPECT_EQ(schedule.at(2000 * kMs).length(), usual_turn(2)) << "not the first one's rest";
}

TEST(Turns, AProlongedStretchKeepsItsTurns) {
  TurnSchedule schedule(2);
  schedule.adopt({0, 400 * kMs, 100 * kMs});
  schedule.adopt({0, 800 * kMs, 100 * kMs});
  EXPECT_EQ(schedule.at(350 * kMs).begin, 300 * kMs);
  EXPECT_EQ(schedule.at(700 * kMs).length(), 100 * kMs);
}

Turn turn_of(Nanos begin, Nanos length) { return {NodeId{0}, begin, begin + length, false}; }

TEST(TurnMeter, WishesForFourTimesTheCollecting) {
  TurnMeter meter;
  EXPECT_EQ(meter.on_wait({1, 10 * kMs, 11 * kMs}, turn_of(10 * kMs, 10 * kMs)), std::nullopt);
  EXPECT_EQ(meter.on_wait({1, 12 * kMs, 14 * kMs}, turn_of(10 * kMs, 10 * kMs)), std::nullopt);
  EXPECT_EQ(meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)),
            4 * (3 * kMs + 2 * kUnseen));
}

TEST(TurnMeter, WhoCollectedAllTheTimeWishesForLongerTurns) {
  TurnMeter meter;
  meter.on_wait({1, 10 * kMs, 19 * kMs}, turn_of(10 * kMs, 10 * kMs));
  EXPECT_EQ(meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)), 40 * kMs);
}

TEST(TurnMeter, CountsTimeOnceAndOnlyThatOfItsTurn) {
  TurnMeter meter;
  meter.on_wait({1, 2 * kMs, 11 * kMs}, turn_of(10 * kMs, 10 * kMs));   // 1 ms of it
  meter.on_wait({1, 10 * kMs, 12 * kMs}, turn_of(10 * kMs, 10 * kMs));  // 1 ms more
  meter.on_wait({1, 11 * kMs, 12 * kMs}, turn_of(10 * kMs, 10 * kMs));  // another thread's
  EXPECT_EQ(meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)),
            4 * (2 * kMs + kUnseen));
}

// A thread that meets one page after the other is kept from computing for three times as long as
// its engine sees it wait: it has not come to the end of its collecting.
TEST(TurnMeter, ManyShortWaitsAreLong) {
  TurnMeter meter;
  const Turn turn = turn_of(10 * kMs, 10 * kMs);
  for (Nanos at = turn.begin; at < turn.end; at += 35 * base::kMicrosecond) {
    meter.on_wait({1, at, at + 8 * base::kMicrosecond}, turn);
  }
  EXPECT_EQ(meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)), 40 * kMs);
}

// Woken on a core that others need, it hardly runs: of 170 us a page takes it its engine sees 20.
TEST(TurnMeter, WhoDoesNotRunBetweenItsPagesIsCollecting) {
  constexpr Nanos kUs = base::kMicrosecond;
  const auto wish_of = [](Nanos idle_before) {
    TurnMeter meter;
    const Turn turn = turn_of(10 * kMs, 10 * kMs);
    for (Nanos at = turn.begin + 150 * kUs; at < turn.end; at += 170 * kUs) {
      meter.on_wait({1, at, at + 20 * kUs, idle_before}, turn);
    }
    return meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)).value();
  };
  EXPECT_LT(wish_of(0), 12 * kMs);
  EXPECT_EQ(wish_of(140 * kUs), 40 * kMs);
}

TEST(TurnMeter, WhoSleptForLongBeforeAPageWasNotCollecting) {
  TurnMeter meter;
  meter.on_wait({1, 19 * kMs, 19 * kMs, 9 * kMs}, turn_of(10 * kMs, 10 * kMs));
  EXPECT_EQ(meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)),
            4 * (kMs + kUnseen));
}

TEST(TurnMeter, WhatComesUnwaitedForIsCollectingToo) {
  TurnMeter meter;
  EXPECT_EQ(meter.on_collected(64, turn_of(10 * kMs, 10 * kMs)), std::nullopt);
  meter.on_wait({1, 12 * kMs, 13 * kMs}, turn_of(10 * kMs, 10 * kMs));
  meter.on_collected(64, turn_of(10 * kMs, 10 * kMs));
  EXPECT_EQ(meter.on_collected(1, turn_of(30 * kMs, 10 * kMs)),
            4 * (kMs + kUnseen + 128 * 8 * base::kMicrosecond));
}

TEST(TurnMeter, PagesGivenAwayInTheSameTurnAreNoneOfItsBusiness) {
  TurnMeter meter;
  for (Nanos at = 10 * kMs; at < 20 * kMs; at += kMs) {
    meter.on_wait({10 * kMs, at, at + kMs}, turn_of(10 * kMs, 10 * kMs));
  }
  EXPECT_EQ(meter.on_wait({1, 30 * kMs, 31 * kMs}, turn_of(30 * kMs, 10 * kMs)), std::nullopt);
}

TEST(TurnArbiter, TellsTheLongestWishOnce) {
  TurnArbiter arbiter(2);
  const auto first = arbiter.on_wish(NodeId{1}, 40 * kMs, 1000 * kMs);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->length, 40 * kMs);
  EXPECT_GT(first->from, 1000 * kMs) << "not before all have heard of it";
  EXPECT_EQ(arbiter.on_wish(NodeId{0}, 10 * kMs, 1001 * kMs), std::nullopt);
  EXPECT_EQ(arbiter.on_wish(NodeId{0}, 160 * kMs, 1010 * kMs)->length, 160 * kMs);
}

TEST(TurnArbiter, SmallWishesLeaveTurnsAsTheyAre) {
  TurnArbiter arbiter(2);
  EXPECT_EQ(arbiter.on_wish(NodeId{1}, usual_turn(2), 1000 * kMs), std::nullopt);
  EXPECT_EQ(arbiter.on_wish(NodeId{1}, 0, 1000 * kMs), std::nullopt);
  EXPECT_EQ(arbiter.on_wish(NodeId{1}, -5, 1000 * kMs), std::nullopt);
}

// A node that goes on wishing gets its turns without a gap; when it stops, they end.
TEST(TurnArbiter, AStretchLastsAsLongAsItIsWishedFor) {
  TurnArbiter arbiter(2);
  TurnSchedule schedule(2);
  Nanos now = 1000 * kMs;
  schedule.adopt(*arbiter.on_wish(NodeId{1}, 100 * kMs, now));
  now += 2 * kMs;
  int told = 1;
  for (int turn = 0; turn < 20; ++turn, now += 200 * kMs) {
    EXPECT_EQ(schedule.at(now).length(), 100 * kMs) << turn;
    const auto stretch = arbiter.on_wish(NodeId{1}, 100 * kMs, now + kMs);
    if (stretch.has_value()) schedule.adopt(*stretch), ++told;
  }
  EXPECT_GT(told, 5);
  EXPECT_EQ(schedule.at(now + base::kSecond).length(), usual_turn(2));
}

TEST(TurnArbiter, WhatItTellsCanAlwaysBe) {
  for (std::uint32_t nodes = 1; nodes <= base::kMaxNodes; ++nodes) {
    TurnArbiter arbiter(nodes);
    std::mt19937_64 random(nodes);
    Nanos now = 1;
    for (int i = 0; i < 1000; ++i) {
      now += static_cast<Nanos>(random() % (300 * kMs));
      const NodeId from{static_cast<std::uint16_t>(random() % nodes)};
      const auto length = static_cast<Nanos>(random() >> (1 + random() % 63));
      const auto stretch = arbiter.on_wish(from, length, now);
      if (!stretch.has_value()) continue;
      EXPECT_TRUE(is_valid(*stretch, nodes)) << stretch->length;
      EXPECT_GT(stretch->until, now);
    }
  }
  EXPECT_FALSE(is_valid({0, 100, kMs}, 2));
  EXPECT_FALSE(is_valid({0, 100, 3 * base::kSecond}, 2));
  EXPECT_FALSE(is_valid({100, 100, 100 * kMs}, 2));
  EXPECT_FALSE(is_valid({-1, 100, 100 * kMs}, 2));
}

}  // namespace
}  // namespace amasia::dsm::protocol
