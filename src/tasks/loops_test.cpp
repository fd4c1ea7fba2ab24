// SPDX-License-Identifier: Apache-2.0
// How many tiles a loop runs before it asks what to do next, and that nobody goes without work.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "amasia/tasks.hpp"

namespace amasia::tasks {
namespace {

using detail::LoopStep;

// Yields its core until that is so; false: it was not within a time that is never needed.
template <typename Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

template <std::size_t kDimensions>
std::vector<int> tiles_run(const range<kDimensions>& over, std::ptrdiff_t first,
                           std::ptrdiff_t last, std::ptrdiff_t most, std::ptrdiff_t& next) {
  const detail::Tiles<kDimensions> tiles(over);
  std::vector<int> seen;
  auto body = [&](auto... at) { seen.push_back((static_cast<int>(at) + ... + 0)); };
  next = tiles.run(first, last, body, [&] { return --most > 0; });
  return seen;
}

TEST(Tiles, RunUntilTheyAreToStopOrOver) {
  std::ptrdiff_t next = 0;
  // Tiles of three: 10 to 12, 13 to 15, 16 to 18, 19.
  EXPECT_EQ(tiles_run(range<1>{{10}, {20}, {3}}, 1, 4, 2, next),
            (std::vector<int>{13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(next, 3);
  EXPECT_EQ(tiles_run(range<1>{{10}, {20}, {3}}, 2, 4, 9, next),
            (std::vector<int>{16, 17, 18, 19}));
  EXPECT_EQ(next, 4);
  EXPECT_EQ(tiles_run(range<2>{{0, 100}, {2, 103}, {1, 2}}, 1, 4, 2, next),
            (std::vector<int>{102, 101, 102}));
  EXPECT_EQ(next, 3);
  EXPECT_EQ(tiles_run(range<3>{{0, 0, 0}, {1, 1, 4}, {1, 1, 1}}, 0, 4, 1, next),
            (std::vector<int>{0}));
  EXPECT_EQ(next, 1);
}

constexpr std::ptrdiff_t kMost = std::numeric_limits<std::ptrdiff_t>::max();

TEST(Tiles, MayBeLargerThanTheirRange) {
  std::ptrdiff_t next = 0;
  for (const std::ptrdiff_t tile : {std::ptrdiff_t{4}, kMost / 2, kMost - 1, kMost}) {
    EXPECT_EQ(tiles_run(range<1>{{10}, {13}, {tile}}, 0, 1, 9, next),
              (std::vector<int>{10, 11, 12}));
    EXPECT_EQ(detail::Tiles(range<1>{{10}, {13}, {tile}}).total, 1);
    EXPECT_EQ(tiles_run(range<2>{{10, 20}, {12, 22}, {tile, 1}}, 0, 2, 9, next),
              (std::vector<int>{30, 31, 31, 32}));
    EXPECT_EQ(detail::Tiles(range<3>{{1, 1, 1}, {3, 3, 3}, {1, tile, tile}}).total, 2);
  }
}

TEST(Tiles, ReachBothEndsOfTheNumbers) {
  std::vector<std::ptrdiff_t> seen;
  auto body = [&](std::ptrdiff_t at) { seen.push_back(at); };
  const auto all_of = [&](const range<1>& over) {
    const detail::Tiles<1> tiles(over);
    seen.clear();
    tiles.run(0, tiles.total, body, [] { return true; });
    return seen;
  };
  EXPECT_EQ(all_of({{kMost - 3}, {kMost}, {2}}),
            (std::vector<std::ptrdiff_t>{kMost - 3, kMost - 2, kMost - 1}));
  EXPECT_EQ(all_of({{-kMost - 1}, {-kMost + 1}, {kMost}}),
            (std::vector<std::ptrdiff_t>{-kMost - 1, -kMost}));
  EXPECT_THROW(detail::Tiles(range<1>{{-2}, {kMost}, {1}}), std::length_error);
  EXPECT_THROW(detail::Tiles(range<2>{{0, 0}, {kMost, 3}, {1, 1}}), std::length_error);
  EXPECT_EQ(detail::Tiles(range<2>{{0, 5}, {kMost, 5}, {1, 1}}).total, 0);
}

void count_one(std::ptrdiff_t /*at*/) {}

// By reference: neither copied nor changed, whatever can be called.
TEST(Loops, BodiesMayBeConstOrFunctions) {
  std::atomic<int> calls{0};
  const auto body = [&calls](std::ptrdiff_t) { ++calls; };
  struct Immovable {
    std::atomic<int>& calls;
    explicit Immovable(std::atomic<int>& which) : calls(which) {}
    Immovable(const Immovable&) = delete;
    Immovable& operator=(const Immovable&) = delete;
    void operator()(std::ptrdiff_t) const { ++calls; }
  } const immovable(calls);
  runtime workers({.workers = 2});
  workers.run([&] {
    forasync(0, 10, body);
    forasync_future(0, 10, body).get();
    forasync(0, 10, immovable);
    forasync(0, 10, count_one);
    forasync_future(0, 10, count_one).get();
  });
  EXPECT_EQ(calls.load(), 30);
}

TEST(LoopTurns, HoldUntilWhatLiesForOthersIsTaken) {
  runtime workers({.workers = 2});
  workers.run([] {
    EXPECT_EQ(detail::next_turn(true).step, LoopStep::kDivide);
    EXPECT_FALSE(detail::next_turn(false).holds()) << "who comes for more is to be seen at once";
    bool held = false;
    for (int n = 0; n < 1000 && !held; ++n) {  // as long as the other one is quicker
      std::atomic<bool> taken{false};
      async([&] { taken.store(true); });
      const detail::LoopTurn turn = detail::next_turn(true);
      held = turn.step == LoopStep::kRunTiles && turn.holds();
      ASSERT_TRUE(comes_true([&] { return taken.load(); }));
      ASSERT_FALSE(turn.holds());
    }
    EXPECT_TRUE(held);
  });
}

TEST(LoopTurns, HoldUntilTheBodyWaits) {
  runtime workers({.workers = 1});
  workers.run([] {
    finish([] {
      async([] {});
      async([] {});
      const detail::LoopTurn turn = detail::next_turn(true);
      EXPECT_EQ(turn.step, LoopStep::kRunTiles);
      EXPECT_TRUE(turn.holds());
      async([] {});  // above the others, and taken first
      finish([] { async([] {}); });
      EXPECT_TRUE(turn.holds());
      yield();
      EXPECT_FALSE(turn.holds());
    });
  });
}

TEST(LoopTurns, DoNotHoldWhereAStopMayBeRequested) {
  runtime workers({.workers = 1});
  workers.run([] {
    std::stop_source source;
    std::vector<int> ran;
    finish(source.get_token(), [&] {
      async([] {});
      EXPECT_FALSE(detail::next_turn(true).holds());
      forasync(range<1>{{0}, {100}, {1}}, [&](std::ptrdiff_t) {
        ran.push_back(1);
        if (ran.size() == 7) source.request_stop();
      });
    });
    EXPECT_EQ(std::accumulate(ran.begin(), ran.end(), 0), 7);
  });
}

// A tile that takes long among many that do not: while it runs the other worker takes the half that
// lies there, and right after it, before any other tile, what is left is divided again.
TEST(Loops, WhatIsLeftIsDividedAsSoonAsAHalfIsTaken) {
  constexpr std::ptrdiff_t kTiles = 1000, kLong = 8;
  runtime workers({.workers = 2});
  std::vector<std::atomic<int>> ran(kTiles);
  workers.run([&] {
    forasync(range<1>{{0}, {kTiles}, {1}}, [&](std::ptrdiff_t tile) {
      if (tile < kLong) {
        // What the one that runs it has kept, if it has divided before each tile up to here.
        std::ptrdiff_t kept = kTiles;
        for (std::ptrdiff_t first = 0; first <= tile; ++first) kept = first + (kept - first) / 2;
        EXPECT_TRUE(comes_true([&] {
          for (std::ptrdiff_t other = kept; other < kTiles; ++other) {
            if (ran[static_cast<std::size_t>(other)].load() == 0) return false;
          }
          return true;
        })) << "tile " << tile;
      }
      ran[static_cast<std::size_t>(tile)].fetch_add(1);
    });
  });
  for (const auto& times : ran) EXPECT_EQ(times.load(), 1);
}

}  // namespace
}  // namespace amasia::tasks
