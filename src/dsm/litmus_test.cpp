// SPDX-License-Identifier: Apache-2.0
// Litmus tests on real faults: two locations on two pages with different homes, a thread per node.
// The outcomes that sequential consistency forbids must never show. Where the hardware itself would
// allow one (store buffering), the accesses are sequentially consistent atomics; elsewhere plain
// moves suffice, so that what is tested is the protocol and not the fences.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "dsm/test_cluster.hpp"

namespace amasia::dsm {
namespace {

using Word = std::atomic<std::uint32_t>;
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr Bytes kRounds = 640;
constexpr Bytes kWordsPerPage = 64;  // one a cache line

struct Locations {
  Word& x;
  Word& y;
};
using Results = std::array<std::uint32_t, 4>;
// What one thread does in one round; may write results.
using Body = std::function<void(Locations, Results&)>;

// All threads enter a round together: a counter in ordinary memory, which every thread passes.
class Rounds {
 public:
  explicit Rounds(std::uint32_t threads) : threads_(threads) {}
  void enter(Bytes round) {
    arrived_.fetch_add(1);
    while (arrived_.load() < (round + 1) * threads_) std::this_thread::yield();
  }

 private:
  const std::uint32_t threads_;
  std::atomic<std::uint64_t> arrived_{0};
};

// Runs the bodies on a node each and returns how many rounds ended in a forbidden outcome.
std::uint64_t count_forbidden(const std::vector<Body>& bodies,
                              const std::function<bool(const Results&)>& forbidden) {
  const auto threads = static_cast<std::uint32_t>(bodies.size());
  TestCluster cluster(threads);
  std::vector<Results> results(kRounds, Results{});
  Rounds rounds(threads);
  {
    std::vector<std::jthread> running;
    for (std::uint32_t k = 0; k < threads; ++k) {
      running.emplace_back([&, k] {
        for (Bytes round = 0; round < kRounds; ++round) {
          const Bytes offset = round / kWordsPerPage * base::kPageSize +
                               round % kWordsPerPage * (base::kPageSize / kWordsPerPage);
          const Locations at{*cluster.at<Word>(k, 0, offset), *cluster.at<Word>(k, 1, offset)};
          rounds.enter(round);
          bodies[k](at, results[round]);
        }
      });
    }
  }
  std::uint64_t count = 0;
  for (const Results& result : results) count += forbidden(result) ? 1 : 0;
  return count;
}

TEST(Litmus, StoreBuffering) {
  const Body first = [](Locations at, Results& r) {
    at.x.store(1);
    r[0] = at.y.load();
  };
  const Body second = [](Locations at, Results& r) {
    at.y.store(1);
    r[1] = at.x.load();
  };
  EXPECT_EQ(
      count_forbidden({first, second}, [](const Results& r) { return r[0] == 0 && r[1] == 0; }),
      0U);
}

TEST(Litmus, MessagePassing) {
  const Body writer = [](Locations at, Results&) {
    at.x.store(1, kRelaxed);
    at.y.store(1, std::memory_order_release);
  };
  const Body reader = [](Locations at, Results& r) {
    r[0] = at.y.load(std::memory_order_acquire);
    r[1] = at.x.load(kRelaxed);
  };
  EXPECT_EQ(
      count_forbidden({writer, reader}, [](const Results& r) { return r[0] == 1 && r[1] == 0; }),
      0U);
}

// As a program would spin on a flag.
TEST(Litmus, SpinningOnAFlagSeesTheData) {
  const Body writer = [](Locations at, Results&) {
    at.x.store(7, kRelaxed);
    at.y.store(1, std::memory_order_release);
  };
  const auto reader = [](std::size_t slot) {
    return [slot](Locations at, Results& r) {
      while (at.y.load(std::memory_order_acquire) == 0) std::this_thread::yield();
      r[slot] = at.x.load(kRelaxed);
    };
  };
  EXPECT_EQ(count_forbidden({writer, reader(0), reader(1)},
                            [](const Results& r) { return r[0] != 7 || r[1] != 7; }),
            0U);
}

TEST(Litmus, LoadBuffering) {
  const Body first = [](Locations at, Results& r) {
    r[0] = at.x.load(std::memory_order_acquire);
    at.y.store(1, std::memory_order_release);
  };
  const Body second = [](Locations at, Results& r) {
    r[1] = at.y.load(std::memory_order_acquire);
    at.x.store(1, std::memory_order_release);
  };
  EXPECT_EQ(
      count_forbidden({first, second}, [](const Results& r) { return r[0] == 1 && r[1] == 1; }),
      0U);
}

// Two readers must agree on the order of two independent writes.
TEST(Litmus, IndependentReadsOfIndependentWrites) {
  const Body write_x = [](Locations at, Results&) { at.x.store(1, kRelaxed); };
  const Body write_y = [](Locations at, Results&) { at.y.store(1, kRelaxed); };
  const Body x_then_y = [](Locations at, Results& r) {
    r[0] = at.x.load(std::memory_order_acquire);
    r[1] = at.y.load(std::memory_order_acquire);
  };
  const Body y_then_x = [](Locations at, Results& r) {
    r[2] = at.y.load(std::memory_order_acquire);
    r[3] = at.x.load(std::memory_order_acquire);
  };
  EXPECT_EQ(count_forbidden(
                {write_x, write_y, x_then_y, y_then_x},
                [](const Results& r) { return r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0; }),
            0U);
}

// Two reads of one location never go back.
TEST(Litmus, CoherenceOfReads) {
  const Body writer = [](Locations at, Results&) { at.x.store(1, kRelaxed); };
  const Body reader = [](Locations at, Results& r) {
    r[0] = at.x.load(std::memory_order_acquire);
    r[1] = at.x.load(std::memory_order_acquire);
  };
  EXPECT_EQ(
      count_forbidden({writer, reader}, [](const Results& r) { return r[0] == 1 && r[1] == 0; }),
      0U);
}

}  // namespace
}  // namespace amasia::dsm
