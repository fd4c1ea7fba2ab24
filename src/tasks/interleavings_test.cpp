// SPDX-License-Identifier: Apache-2.0
// The explorer against what is known of x86: what may be seen, what may not, how many orders.
#include "tasks/interleavings.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace amasia::tasks::model {
namespace {

using Atomics = ModelAtomics<>;
using Word = Atomics::Atomic<std::uint32_t>;
using Pair = std::pair<std::uint32_t, std::uint32_t>;
using Order = std::memory_order;

constexpr Order kRelaxed = std::memory_order_relaxed;
constexpr Order kStrong = std::memory_order_seq_cst;

struct Two {
  Word x{0}, y{0};
  std::uint32_t a = 0, b = 0;
};

// Each stores to its own and loads the other's.
std::set<Pair> store_then_load(Order store, std::uint64_t* runs) {
  std::set<Pair> seen;
  Explorer explorer([&](Trial& run) {
    auto both = std::make_shared<Two>();
    run.add_thread([both, store] {
      both->x.store(1, store);
      both->a = both->y.load(kRelaxed);
    });
    run.add_thread([both, store] {
      both->y.store(1, store);
      both->b = both->x.load(kRelaxed);
    });
    run.at_end([both, &seen] {
      seen.emplace(both->a, both->b);
      return std::string();
    });
  });
  const Exploration done = explorer.explore();
  EXPECT_TRUE(done.complete) << done.violation;
  *runs = done.runs;
  return seen;
}

TEST(Interleavings, StoresWaitInBuffers) {
  std::uint64_t runs = 0;
  EXPECT_EQ(store_then_load(kRelaxed, &runs), (std::set<Pair>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(store_then_load(kStrong, &runs), (std::set<Pair>{{0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(runs, 3u);  // of 6 orders of 2 and 2 steps, 3 differ in more than exchanges
}

TEST(Interleavings, StoresArriveInOrder) {
  std::set<Pair> seen;
  Explorer explorer([&](Trial& run) {
    auto both = std::make_shared<Two>();
    run.add_thread([both] {
      both->x.store(1, kRelaxed);
      both->y.store(1, kRelaxed);
    });
    run.add_thread([both] {
      both->a = both->y.load(kRelaxed);
      both->b = both->x.load(kRelaxed);
    });
    run.at_end([both, &seen] {
      seen.emplace(both->a, both->b);
      return std::string();
    });
  });
  EXPECT_TRUE(explorer.explore().complete);
  EXPECT_EQ(seen, (std::set<Pair>{{0, 0}, {0, 1}, {1, 1}}));
}

TEST(Interleavings, AThreadSeesItsOwnBuffer) {
  Explorer explorer([](Trial& run) {
    auto both = std::make_shared<Two>();
    run.add_thread([both] {
      both->x.store(7, kRelaxed);
      both->a = both->x.load(kRelaxed);
    });
    run.at_end([both] { return both->a == 7 ? "" : "lost its own store"; });
  });
  EXPECT_EQ(explorer.explore().violation, "");
}

TEST(Interleavings, ABarrierEmptiesAllBuffers) {
  std::set<Pair> seen;
  Explorer explorer([&](Trial& run) {
    auto both = std::make_shared<Two>();
    run.add_thread([both] {
      both->x.store(1, kRelaxed);
      both->a = both->y.load(kRelaxed);
    });
    run.add_thread([both] {
      both->y.store(1, kRelaxed);
      Trial::current()->barrier();
      both->b = both->x.load(kRelaxed);
    });
    run.at_end([both, &seen] {
      seen.emplace(both->a, both->b);
      return std::string();
    });
  });
  EXPECT_TRUE(explorer.explore().complete);
  EXPECT_EQ(seen, (std::set<Pair>{{0, 1}, {1, 0}, {1, 1}}));
}

TEST(Interleavings, ASleeperThatNobodyWakesIsFound) {
  const auto scenario = [](bool wakes) {
    return [wakes](Trial& run) {
      auto word = std::make_shared<Word>(0);
      run.add_thread([word] { Atomics::sleep_while(*word, 0); });
      run.add_thread([word, wakes] {
        word->store(1, kStrong);
        if (wakes) Atomics::wake(*word);
      });
    };
  };
  EXPECT_EQ(Explorer(scenario(false)).explore().violation, "thread 0 never wakes");
  const Exploration right = Explorer(scenario(true)).explore();
  EXPECT_EQ(right.violation, "");
  EXPECT_TRUE(right.complete);
}

TEST(Interleavings, AllOrdersOfIncrementsAreTried) {
  std::set<std::uint32_t> sums;
  Explorer explorer([&](Trial& run) {
    auto word = std::make_shared<Word>(0);
    for (int thread = 0; thread < 3; ++thread) {
      run.add_thread([word] { word->store(word->load(kRelaxed) + 1, kStrong); });
    }
    run.at_end([word, &sums] {
      sums.insert(word->load(kRelaxed));
      return std::string();
    });
  });
  EXPECT_TRUE(explorer.explore().complete);
  EXPECT_EQ(sums, (std::set<std::uint32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace amasia::tasks::model
