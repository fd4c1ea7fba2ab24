// SPDX-License-Identifier: Apache-2.0
// The engine with real faults: N nodes of one process over the loopback fabric. Every wait is for
// an event; there are no sleeps.
#include "dsm/engine.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dsm/page_message.hpp"
#include "dsm/protocol/turns.hpp"
#include "dsm/strided_walks.hpp"
#include "dsm/test_cluster.hpp"
#include "os/os.hpp"

namespace amasia::dsm {
namespace {

using base::kPageSize;

// Runs body(node) on a thread for each node, all at once.
void on_all_nodes(std::uint32_t nodes, const std::function<void(std::uint32_t)>& body) {
  std::barrier start(static_cast<std::ptrdiff_t>(nodes));
  std::vector<std::jthread> threads;
  for (std::uint32_t k = 0; k < nodes; ++k) {
    threads.emplace_back([&, k] {
      start.arrive_and_wait();
      body(k);
    });
  }
}

using Counter = std::atomic<std::uint64_t>;

class EngineTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t nodes() const { return GetParam(); }
};

TEST_P(EngineTest, EveryNodeReadsWhatItsHomeWrote) {
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 40;
  for (Bytes i = 0; i < kPages; ++i) *cluster.at<Bytes>(0, 0, i * kPageSize + 8) = i + 1;
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    for (Bytes i = 0; i < kPages; ++i) {
      EXPECT_EQ(*cluster.at<Bytes>(node, 0, i * kPageSize + 8), i + 1);
    }
  });
  for (std::uint32_t node = 1; node < nodes(); ++node) {
    EXPECT_GT(cluster.engine(node).statistics().pages_in, 0U);
  }
  EXPECT_EQ(cluster.engine(0).statistics().faults_read, 0U);
}

// The kernel takes a run of pages only within one of its mappings, and guard pages split them.
TEST_P(EngineTest, PagesAroundAGuardPageAreInstalledInOneRun) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 24;
  for (Bytes i = 0; i < kPages; ++i) *cluster.at<Bytes>(0, 0, i * kPageSize) = i + 1;
  for (const Bytes guard : {3U, 4U, 17U}) {
    void* const page = cluster.at<char>(1, 0, guard * kPageSize);
    ASSERT_EQ(mprotect(page, kPageSize, PROT_NONE), 0);
  }
  for (const AccessKind access : {AccessKind::kRead, AccessKind::kWrite}) {
    cluster.engine(1).prefetch(cluster.at<char>(1, 0), kPages * kPageSize, access);
    for (Bytes i = 0; i < kPages; ++i) {
      if (i == 3 || i == 4 || i == 17) continue;
      auto* const word = cluster.at<std::atomic<Bytes>>(1, 0, i * kPageSize);
      if (access == AccessKind::kWrite) word->fetch_add(1000);
      EXPECT_EQ(*word, i + 1 + (access == AccessKind::kWrite ? 1000 : 0));
    }
  }
  // The home takes them all back, from under the guard pages too.
  for (Bytes i = 0; i < kPages; ++i) {
    const bool guard = i == 3 || i == 4 || i == 17;
    EXPECT_EQ(cluster.at<std::atomic<Bytes>>(0, 0, i * kPageSize)->fetch_add(1),
              i + 1 + (guard ? 0 : 1000));
  }
}

TEST_P(EngineTest, APageNobodyWroteReadsAsZeroEverywhere) {
  TestCluster cluster(nodes());
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    for (std::uint32_t home = 0; home < nodes(); ++home) {
      EXPECT_EQ(*cluster.at<Bytes>(node, home, 64 * kPageSize), 0U);
    }
  });
}

TEST_P(EngineTest, OwnMemoryRaisesNoFault) {
  TestCluster cluster(nodes());
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    std::memset(cluster.at<char>(node, node), 7, 256 * kPageSize);
  });
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    const Statistics statistics = cluster.engine(node).statistics();
    EXPECT_EQ(statistics.faults_read + statistics.faults_write + statistics.stale_events, 0U);
  }
}

// Every page is a counter that all nodes increment; homes are spread over the nodes.
TEST_P(EngineTest, AtomicCountersSumUp) {
  constexpr int kRounds = 300;
  constexpr Bytes kPages = 8;
  TestCluster cluster(nodes());
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    std::minstd_rand random(node + 1);
    for (int round = 0; round < kRounds; ++round) {
      const Bytes page = random() % kPages;
      cluster.at<Counter>(node, static_cast<std::uint32_t>(page) % nodes(), page * kPageSize)
          ->fetch_add(1);
    }
  });
  std::uint64_t sum = 0;
  for (Bytes page = 0; page < kPages; ++page) {
    sum += *cluster.at<Counter>(nodes() - 1, static_cast<std::uint32_t>(page) % nodes(),
                                page * kPageSize);
  }
  EXPECT_EQ(sum, static_cast<std::uint64_t>(kRounds) * nodes());
}

TEST_P(EngineTest, FalseSharingLosesNothing) {
  constexpr std::uint64_t kRounds = 20'000;
  TestCluster cluster(nodes());
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    auto* const own = cluster.at<volatile std::uint64_t>(node, 0, 64 * node);
    for (std::uint64_t i = 0; i < kRounds; ++i) *own = *own + 1;
  });
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    EXPECT_EQ(*cluster.at<std::uint64_t>(0, 0, 64 * node), kRounds);
  }
}

// A load or store over a page boundary needs both pages at the same time.
TEST_P(EngineTest, AnInstructionThatSpansTwoPagesGetsBoth) {
  TestCluster cluster(nodes());
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    auto* const value = cluster.at<char>(node, 0, kPageSize - 4);
    for (int i = 0; i < 200; ++i) {
      std::uint64_t copy;
      __asm__ volatile("lock addq $1, (%1)\n\tmovq (%1), %0" : "=r"(copy) : "r"(value) : "memory");
    }
  });
  std::uint64_t sum;
  std::memcpy(&sum, cluster.at<char>(0, 0, kPageSize - 4), sizeof sum);
  EXPECT_EQ(sum, 200U * nodes());
}

TEST_P(EngineTest, SequentialReadIsAskedForAhead) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 2000;
  for (Bytes i = 0; i < kPages; ++i) *cluster.at<Bytes>(0, 0, i * kPageSize) = i * 3 + 1;
  Bytes sum = 0;
  for (Bytes i = 0; i < kPages; ++i) sum += *cluster.at<Bytes>(1, 0, i * kPageSize);
  EXPECT_EQ(sum, kPages * (kPages - 1) / 2 * 3 + kPages);
  const Statistics statistics = cluster.engine(1).statistics();
  EXPECT_LT(statistics.faults_read, kPages / 4);
  EXPECT_GT(statistics.pages_prefetched, kPages / 2);
}

// Every hundredth row of a matrix: steps of five pages and a bit.
TEST_P(EngineTest, StridedWritesAreAskedForAhead) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kSteps = 300, kStep = 21'600;
  for (Bytes i = 0; i < kSteps; ++i) *cluster.at<Bytes>(0, 0, i * kStep) = i;
  for (Bytes i = 0; i < kSteps; ++i) {
    *cluster.at<Bytes>(1, 0, i * kStep) += 7;
    // With a row's work between them; a walk without any may outrun what is asked for.
    const Nanos done = os::monotonic_now() + 20 * base::kMicrosecond;
    while (os::monotonic_now() < done) {
    }
  }
  const Statistics statistics = cluster.engine(1).statistics();
  EXPECT_LT(statistics.faults_write, kSteps / 3);
  // What is asked for beyond the last step depends on when pages come: two windows at most.
  constexpr Bytes kBeyond = 2 * StridedWalks::kLargestWindow;
  EXPECT_LT(statistics.pages_in, kSteps * 3 / 2 + kBeyond);
  for (Bytes i = 0; i < kSteps; ++i) EXPECT_EQ(*cluster.at<Bytes>(0, 0, i * kStep), i + 7);
}

TEST_P(EngineTest, ScatteredReadsAreAskedForByBlocks) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 1024;
  const auto number = [](NodeId::representation node, Bytes i, TestCluster& of) -> Bytes& {
    return *of.at<Bytes>(node, 0, i * 389 % kPages * kPageSize);  // each page once, in no order
  };
  for (Bytes i = 0; i < kPages; ++i) number(0, i, cluster) = i;
  Bytes sum = 0;
  for (Bytes i = 0; i < kPages; ++i) sum += number(1, i, cluster);
  EXPECT_EQ(sum, kPages * (kPages - 1) / 2);
  EXPECT_LT(cluster.engine(1).statistics().faults_read, kPages / 4);
}

// Each page is waited for once, not to read it and then to own it, and no neighbour is asked for.
TEST_P(EngineTest, ScatteredPagesThatAreAddedToAreAskedForAsAWriter) {
  if (nodes() == 1) return;
  constexpr std::uint64_t kPlace = 9;
  constexpr Bytes kPages = 256, kApart = 3;
  TestCluster cluster(nodes());
  // Adding to these takes a load and a store; to whole numbers one instruction that writes.
  const auto number = [&](NodeId::representation node, Bytes i) -> double& {
    return *cluster.at<double>(node, 0, i * 149 % kPages * kApart * kPageSize);
  };
  for (Bytes i = 0; i < kPages; ++i) number(0, i) = static_cast<double>(i);
  cluster.engine(1).enter_place(kPlace);
  for (Bytes i = 0; i < kPages; ++i) number(1, i) += 7;
  cluster.engine(1).enter_place(0);
  const Statistics statistics = cluster.engine(1).statistics();
  EXPECT_LT(statistics.faults_upgrade, kPages / 4);
  EXPECT_LT(statistics.pages_in, kPages * 3 / 2);
  for (Bytes i = 0; i < kPages; ++i) EXPECT_EQ(number(0, i), static_cast<double>(i + 7));
}

TEST_P(EngineTest, WhatOthersOwnIsGatheredAtItsHomeWithoutAFault) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 1000;  // more than are asked back at a time
  for (Bytes i = 0; i < kPages; ++i) *cluster.at<Bytes>(0, 0, i * kPageSize) = i;
  const auto last = static_cast<NodeId::representation>(nodes() - 1);
  for (Bytes i = 0; i < kPages; ++i) *cluster.at<Bytes>(last, 0, i * kPageSize) += 7;
  const Statistics before = cluster.engine(0).statistics();
  cluster.engine(0).gather(true);
  while (cluster.engine(0).statistics().pages_in < before.pages_in + kPages) {
    std::this_thread::yield();
  }
  for (Bytes i = 0; i < kPages; ++i) {
    EXPECT_EQ(*cluster.at<Bytes>(0, 0, i * kPageSize), i + 7);
  }
  const Statistics after = cluster.engine(0).statistics();
  EXPECT_EQ(after.faults_read + after.faults_write, before.faults_read + before.faults_write);
}

// What is only read is looked at in pieces, and they come to an end.
TEST_P(EngineTest, WhatLiesBehindManyPagesThatAreOnlyReadIsGatheredToo) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 20000;  // more than are looked at in one go
  Bytes sum = 0;
  for (Bytes i = 0; i < kPages; ++i) sum += *cluster.at<Bytes>(1, 0, i * kPageSize);
  *cluster.at<Bytes>(1, 0, kPages * kPageSize) = 7;
  const Statistics before = cluster.engine(0).statistics();
  cluster.engine(0).gather(true);
  while (cluster.engine(0).statistics().pages_in == before.pages_in) std::this_thread::yield();
  EXPECT_EQ(*cluster.at<Bytes>(0, 0, kPages * kPageSize), 7 + sum);
}

TEST_P(EngineTest, AHintBringsPagesWithoutAFault) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  constexpr Bytes kPages = 32;
  std::memset(cluster.at<char>(0, 0), 5, kPages * kPageSize);
  cluster.engine(1).prefetch(cluster.at<char>(1, 0), kPages * kPageSize, AccessKind::kRead);
  while (cluster.engine(1).statistics().pages_in < kPages) std::this_thread::yield();
  for (Bytes i = 0; i < kPages; ++i) EXPECT_EQ(*cluster.at<char>(1, 0, i * kPageSize), 5);
  EXPECT_EQ(cluster.engine(1).statistics().faults_read, 0U);
}

// The home writes a page again and again that all others read: with offers nobody ever waits.
TEST_P(EngineTest, AnOfferedPageIsReadAndWrittenAgainWithoutAFault) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  Engine& home = cluster.engine(0);
  const std::uint64_t others = ((std::uint64_t{1} << nodes()) - 1) & ~std::uint64_t{1};
  constexpr std::uint32_t kMask = 1U << 5;
  for (Bytes round = 1; round <= 20; ++round) {
    Counter* const word = cluster.at<Counter>(0, 0, 5 * kPageSize + 16);
    *word = round;
    EXPECT_EQ(home.offer(word, others).sent, others);
    EXPECT_EQ(home.offer(word, others).sent, 0U) << "they have it";
    for (std::uint32_t node = 1; node < nodes(); ++node) {
      Engine& engine = cluster.engine(node);
      while (engine.statistics().pages_in < round) engine.poll();
      EXPECT_EQ(*cluster.at<Counter>(node, 0, 5 * kPageSize + 16), round);
      const void* const first = cluster.at<char>(node, 0);
      EXPECT_EQ(engine.give_back(first, kMask | 1U), kMask);
      EXPECT_EQ(engine.give_back(first, kMask), 0U) << "it has none any more";
      home.take_back(NodeId{static_cast<NodeId::representation>(node)}, cluster.at<char>(0, 0),
                     kMask);
    }
  }
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    const Statistics statistics = cluster.engine(node).statistics();
    EXPECT_EQ(statistics.faults_read + statistics.faults_write + statistics.faults_upgrade, 0U);
  }
}

TEST_P(EngineTest, APageIsOfferedToWhoAsksForIt) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  Engine& home = cluster.engine(0);
  Counter* const word = cluster.at<Counter>(0, 0);
  *word = 1;
  EXPECT_EQ(home.offer(word, 2, true).sent, 0U) << "nobody has asked";
  EXPECT_EQ(*cluster.at<Counter>(1, 0), 1U);
  *word = 2;
  const Engine::Offer offer = home.offer(word, 2, true);
  EXPECT_TRUE(offer.asked);
  EXPECT_EQ(offer.sent, 2U);
  EXPECT_FALSE(home.offer(word, 2, true).asked);
}

// Copies that the home takes away, that are written, or that nobody gives back are like any other.
TEST_P(EngineTest, AnOfferedPageMayBeUsedInAnyWay) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  Engine& home = cluster.engine(0);
  Engine& other = cluster.engine(1);
  Counter* const here = cluster.at<Counter>(0, 0);
  Counter* const there = cluster.at<Counter>(1, 0);
  const auto offered = [&](Bytes pages) {
    EXPECT_EQ(home.offer(here, 2).sent, 2U);
    while (other.statistics().pages_in < pages) std::this_thread::yield();
  };
  *here = 1;
  offered(1);
  *here = 2;  // taken away
  EXPECT_EQ(*there, 2U);
  *here = 3;
  offered(3);
  *there = 4;  // used for more
  EXPECT_EQ(other.give_back(there, 1), 0U);
  EXPECT_EQ(*here, 4U);
  *here = 5;
  EXPECT_EQ(home.offer(here, 2).sent, 0U) << "it was written there";
  offered(4);
  EXPECT_EQ(*there, 5U);
  EXPECT_EQ(other.give_back(there, 1), 1U);
  *here = 6;  // though the home has not heard of it
  EXPECT_EQ(*there, 6U);
  home.take_back(NodeId{1}, here, 1);  // late: it says nothing of the copy that is there now
  *here = 7;
  EXPECT_EQ(*there, 7U);
  EXPECT_EQ(home.offer(&home, 2).sent, 0U) << "not managed memory";
  EXPECT_EQ(other.give_back(&home, 1), 0U);
}

// What a place of the program has waited for twice is on its way when it is entered again.
TEST_P(EngineTest, APlaceIsNotWaitedForTheSamePagesAgainAndAgain) {
  if (nodes() == 1) return;
  constexpr std::uint64_t kPlace = 9;
  constexpr std::array<Bytes, 3> kPages{3, 40, 77};
  TestCluster cluster(nodes());
  Engine& reader = cluster.engine(1);
  for (Bytes round = 1; round <= 8; ++round) {
    for (const Bytes page : kPages) *cluster.at<Counter>(0, 0, page * kPageSize) = round;
    const Statistics before = reader.statistics();
    reader.enter_place(kPlace);
    while (round > 2 && reader.statistics().pages_in < before.pages_in + kPages.size()) {
      std::this_thread::yield();
    }
    for (const Bytes page : kPages) EXPECT_EQ(*cluster.at<Counter>(1, 0, page * kPageSize), round);
    const std::uint64_t faults = reader.statistics().faults_read - before.faults_read;
    EXPECT_EQ(faults, round > 2 ? 0 : kPages.size()) << "round " << round;
    reader.enter_place(0);
  }
}

TEST_P(EngineTest, TheKernelsOwnAccessesWaitForThePage) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  std::strcpy(cluster.at<char>(0, 0), "/proc/self/status");
  FILE* const file = std::fopen(cluster.at<char>(1, 0), "r");
  ASSERT_NE(file, nullptr);
  std::fclose(file);
}

TEST_P(EngineTest, StallIsBookedToTheThread) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  *cluster.at<int>(0, 0) = 1;
  ThreadSlot* const slot = cluster.engine(1).register_thread();
  EXPECT_EQ(slot, cluster.engine(1).register_thread());
  EXPECT_EQ(*cluster.at<volatile int>(1, 0), 1);
  *cluster.at<volatile int>(1, 0) = 2;
  *cluster.at<volatile int>(1, 0, 5 * kPageSize) = 2;
  EXPECT_EQ(slot->faults_read.load(), 1U);
  EXPECT_EQ(slot->faults_upgrade.load(), 1U);
  EXPECT_EQ(slot->faults_write.load(), 1U);
  const Statistics statistics = cluster.engine(1).statistics();
  EXPECT_GT(slot->stall_ns.load(), 0);
  EXPECT_EQ(slot->stall_ns.load(), statistics.stall_ns);
  cluster.engine(1).unregister_thread(slot);
}

// While a thread helps, messages are handled by it; afterwards by the service thread again.
TEST_P(EngineTest, AHelpingThreadServesTheOthers) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  std::memset(cluster.at<char>(0, 0), 9, 16 * kPageSize);
  std::atomic<bool> done{false};
  std::jthread reader([&] {
    for (Bytes i = 0; i < 16; i += 3) EXPECT_EQ(*cluster.at<char>(1, 0, i * kPageSize), 9);
    done = true;
  });
  {
    Engine::Helping helping(cluster.engine(0));
    while (!done) helping.poll();
  }
  EXPECT_EQ(*cluster.at<char>(1, 0, 14 * kPageSize), 9);
}

// A helper should not touch managed memory; if it does, it must not wait for ever.
TEST_P(EngineTest, AHelperThatFaultsIsServed) {
  if (nodes() == 1) return;
  TestCluster cluster(nodes());
  *cluster.at<int>(0, 0) = 3;
  Engine::Helping helping(cluster.engine(1));
  helping.poll();
  EXPECT_EQ(*cluster.at<volatile int>(1, 0), 3);
}

// Each word is written by one node only and counts up; the others must never see it go back.
// In the end every node sees the last values.
TEST_P(EngineTest, RandomWorkloadAgreesWithAnOracle) {
  constexpr Bytes kPages = 24;
  constexpr Bytes kWords = 16;  // per page and node
  constexpr int kSteps = 1500;
  TestCluster cluster(nodes());
  const auto word = [&](std::uint32_t viewer, std::uint32_t writer, Bytes page, Bytes index) {
    return cluster.at<Counter>(viewer, static_cast<std::uint32_t>(page) % nodes(),
                               page * kPageSize + (writer * kWords + index) * 8);
  };
  std::vector<std::uint64_t> last(nodes() * kPages * kWords, 0);
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    std::mt19937 random(node * 77 + 5);
    std::vector<std::uint64_t> seen(nodes() * kPages * kWords, 0);
    for (int step = 1; step <= kSteps; ++step) {
      const Bytes page = random() % kPages;
      const Bytes index = random() % kWords;
      const bool write = random() % 3 == 0;
      const std::uint32_t writer = write ? node : random() % nodes();
      const std::size_t at = (writer * kPages + page) * kWords + index;
      if (write) {
        word(node, node, page, index)->store(static_cast<std::uint64_t>(step));
        last[at] = static_cast<std::uint64_t>(step);
        seen[at] = last[at];
      } else {
        const std::uint64_t value = word(node, writer, page, index)->load();
        ASSERT_GE(value, seen[at]);
        seen[at] = value;
      }
    }
  });
  for (std::uint32_t viewer = 0; viewer < nodes(); ++viewer) {
    for (std::size_t at = 0; at < last.size(); ++at) {
      const auto writer = static_cast<std::uint32_t>(at / kWords / kPages);
      ASSERT_EQ(*word(viewer, writer, at / kWords % kPages, at % kWords), last[at]);
    }
  }
}

// What comes to stay is waited for once; only what others have taken since counts.
TEST_P(EngineTest, WaitsForWhatWasLostAreCounted) {
  if (nodes() == 1) return;
  constexpr Bytes kPages = 40;
  TestCluster cluster(nodes());
  const auto touch_all = [&](std::uint32_t node) {
    for (Bytes i = 0; i < kPages; ++i) ++*cluster.at<Bytes>(node, 0, i * kPageSize);
  };
  const auto waited = [&](std::uint32_t node) { return cluster.engine(node).stall_for_lost(); };
  touch_all(0);
  cluster.engine(0).watch_losses();
  cluster.engine(1).watch_losses();
  touch_all(1);
  EXPECT_EQ(waited(0), 0);
  EXPECT_EQ(waited(1), 0);
  touch_all(0);
  EXPECT_GT(waited(0), 0);
  EXPECT_EQ(waited(1), 0);
  touch_all(1);
  EXPECT_GT(waited(1), 0);
  // Of a watch that begins now nothing is lost yet.
  const Nanos before = waited(0);
  cluster.engine(0).watch_losses();
  touch_all(0);
  EXPECT_EQ(waited(0), before);
}

// Nodes that add at random places take stretched turns, in which pages come block by block.
TEST(EngineTurns, WhoWritesAtRandomCollectsBlocks) {
  constexpr std::uint64_t kPages = 512, kEnough = 4 * kPages;
  constexpr Bytes kApart = 2 * kPageSize;  // so that nothing is taken for a walk
  constexpr Nanos kLongest = 20 * base::kSecond;
  TestCluster cluster(2);
  std::array<std::uint64_t, 2> added{};
  std::atomic<bool> enough{false};
  on_all_nodes(2, [&](std::uint32_t node) {
    std::minstd_rand random(node + 1);
    const Nanos end = os::monotonic_now() + kLongest;
    for (std::uint64_t i = 0; !enough.load(std::memory_order_relaxed); ++i) {
      cluster.at<Counter>(node, 0, random() % kPages * kApart)->fetch_add(1);
      ++added[node];
      if (i % 256 != 0) continue;
      const std::uint64_t prefetched = cluster.engine(node).statistics().pages_prefetched;
      if (prefetched >= kEnough || os::monotonic_now() > end) enough.store(true);
    }
  });
  std::uint64_t sum = 0;
  for (std::uint64_t page = 0; page < kPages; ++page) {
    sum += cluster.at<Counter>(0, 0, page * kApart)->load();
  }
  EXPECT_EQ(sum, added[0] + added[1]);
  const Statistics first = cluster.engine(0).statistics(), second = cluster.engine(1).statistics();
  EXPECT_GE(std::max(first.pages_prefetched, second.pages_prefetched), kEnough);
}

// A fabric that always has work which this node's poll() cannot take, as when another thread of the
// node polls, or a frame waits for room at a peer.
class BusyFabric final : public fabric::Fabric {
 public:
  explicit BusyFabric(fabric::Fabric& real) : real_(real) {}
  NodeId self() const override { return real_.self(); }
  std::uint32_t node_count() const override { return real_.node_count(); }
  bool send(NodeId to, fabric::MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload) override {
    return real_.send(to, type, head, payload);
  }
  std::uint32_t poll(std::uint32_t) override { return 0; }
  bool arm() override {
    arms_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  int wait_descriptor() const override { return real_.wait_descriptor(); }
  void set_handler(fabric::MessageType first, fabric::MessageType last,
                   fabric::Handler* handler) override {
    real_.set_handler(first, last, handler);
  }
  void set_peer_lost_handler(fabric::PeerLostHandler* handler) override {
    real_.set_peer_lost_handler(handler);
  }
  fabric::Statistics statistics() const override { return real_.statistics(); }
  std::uint64_t arms() const { return arms_.load(std::memory_order_relaxed); }

 private:
  fabric::Fabric& real_;
  std::atomic<std::uint64_t> arms_{0};
};

TEST(EngineService, LeavesTheCoreToOthersWhileItCannotTakeWhatIsThere) {
  const auto network = fabric::make_loopback(2);
  BusyFabric busy(network->fabric(base::kOrigin));
  AddressSpace space;
  ASSERT_TRUE(space
                  .map({.self = base::kOrigin,
                        .node_count = 2,
                        .base = TestCluster::kBase,
                        .span = 2 * base::kGiB,
                        .globals_span = base::kGiB})
                  .ok());
  {
    auto engine = Engine::make(space, busy, {});
    ASSERT_TRUE(engine.ok());
    ASSERT_TRUE(engine.value()->start().ok());
    constexpr std::uint64_t kArms = 1000;
    while (busy.arms() < kArms) os::yield_core();
    EXPECT_GE(engine.value()->statistics().sleeps, kArms / 2);
    engine.value()->shutdown();
  }
  space.release();
}

// What another node says of turns and blocks decides what this one keeps and asks for: it is
// checked first.
struct RefusedWords {
  std::uint32_t at;  // the node that hears it
  fabric::MessageType type;
  std::vector<std::byte> body;
  const char* sentence;
};

class FailureOfOneNode final : public Engine::Observer {
 public:
  void engine_failed(std::string_view what) override {
    sentence_ = what;
    failed_.store(true, std::memory_order_release);  // partner: wait()
    failed_.notify_all();
  }
  const std::string& wait() {
    failed_.wait(false, std::memory_order_acquire);
    return sentence_;
  }

 private:
  std::string sentence_;
  std::atomic<bool> failed_{false};
};

TEST(EngineService, RefusesWhatCannotBe) {
  const auto bytes = [](const auto& value) {
    const auto view = std::as_bytes(std::span(&value, 1));
    return std::vector<std::byte>(view.begin(), view.end());
  };
  const std::vector<RefusedWords> all = {
      {0, kTurnWish, {}, "node 1 sent a malformed wish for turns"},
      {0, kTurnWish, std::vector<std::byte>(9), "node 1 sent a malformed wish for turns"},
      {0, kTurnStretch, bytes(protocol::Stretch{}), "node 1 sent a malformed stretch of turns"},
      {1, kTurnWish, bytes(Nanos{1}), "node 0 sent a malformed wish for turns"},
      {1, kTurnStretch, std::vector<std::byte>(23), "node 0 sent a malformed stretch of turns"},
      {1, kTurnStretch, bytes(protocol::Stretch{0, 1, Nanos{1} << 60}),
       "node 0 sent a stretch of turns that cannot be"},
      {1, kStretchQuestion, std::vector<std::byte>(7),
       "node 0 sent a malformed question of a block"},
      {1, kStretchQuestion, bytes(StretchQuestion{~std::uint64_t{0}}),
       "node 0 asked for a block that is not of this node's heap"},
      {1, kStretchQuestion, bytes(StretchQuestion{base::kGiB / kPageSize}),  // the origin's
       "node 0 asked for a block that is not of this node's heap"},
      {1, kStretchAnswer, std::vector<std::byte>(25), "node 0 sent malformed bounds of a block"},
      {1, kStretchAnswer, bytes(StretchAnswer{1, ~std::uint64_t{0}, 1}),
       "node 0 sent bounds of a block that cannot be"},
      {1, kStretchAnswer, bytes(StretchAnswer{1, base::kGiB / kPageSize, ~std::uint64_t{0}}),
       "node 0 sent bounds of a block that cannot be"},
  };
  for (const RefusedWords& one : all) {
    const auto network = fabric::make_loopback(2);
    const NodeId self{static_cast<NodeId::representation>(one.at)};
    AddressSpace space;
    ASSERT_TRUE(space
                    .map({.self = self,
                          .node_count = 2,
                          .base = TestCluster::kBase,
                          .span = 2 * base::kGiB,
                          .globals_span = base::kGiB})
                    .ok());
    {
      FailureOfOneNode failure;
      auto engine = Engine::make(space, network->fabric(self), {.observer = &failure});
      ASSERT_TRUE(engine.ok());
      ASSERT_TRUE(engine.value()->start().ok());
      const NodeId other{static_cast<NodeId::representation>(1 - one.at)};
      ASSERT_TRUE(network->fabric(other).send(self, one.type, one.body));
      EXPECT_EQ(failure.wait(), one.sentence);
      engine.value()->shutdown();
    }
    space.release();
  }
}

// Two arrays, one behind the other, of which another node works on the second one.
TEST_P(EngineTest, AWalkIsNotFollowedBeyondItsBlock) {
  if (nodes() == 1) return;
  constexpr Bytes kPages = 128;
  Engine::Settings settings;
  settings.read_ahead_pages = 128;
  for (const bool bounded : {false, true}) {
    TestCluster cluster(nodes(), settings);
    if (bounded) {
      cluster.note_block(0, 0, kPages * kPageSize);
      cluster.note_block(0, kPages * kPageSize, kPages * kPageSize);
    }
    const std::uint32_t last = nodes() - 1;
    for (Bytes i = 0; i < 2 * kPages; ++i) *cluster.at<Bytes>(0, 0, i * kPageSize) = i + 1;
    for (Bytes i = 0; i < kPages; ++i) {
      ASSERT_EQ(*cluster.at<Bytes>(last, 0, i * kPageSize), i + 1);
    }
    const Statistics walked = cluster.engine(last).statistics();
    if (bounded) {
      EXPECT_EQ(walked.pages_in, kPages);
    } else {
      EXPECT_GT(walked.pages_in, kPages + kPages / 4);
    }
    EXPECT_LT(walked.faults_read, kPages / 4) << "it was followed";
    // It may go on all the same.
    for (Bytes i = kPages; i < 2 * kPages; ++i) {
      ASSERT_EQ(*cluster.at<Bytes>(last, 0, i * kPageSize), i + 1);
    }
    const Statistics both = cluster.engine(last).statistics();
    EXPECT_LT(both.faults_read, kPages / 2);
    if (bounded) {
      EXPECT_EQ(both.pages_in, 2 * kPages);
    }
  }
}

// A node works on more of the others' memory than it may use.
TEST_P(EngineTest, CopiesAreEvictedToStayBelowTheLimit) {
  if (nodes() == 1) return;
  constexpr Bytes kLimit = 24 * base::kMiB, kPages = 12'000;
  Engine::Settings settings;
  settings.memory = kLimit;
  settings.read_ahead_pages = 64;
  TestCluster cluster(nodes(), settings);
  const std::uint32_t last = nodes() - 1;
  const auto word = [&](std::uint32_t node, Bytes i) {
    return cluster.at<Bytes>(node, 0, i * kPageSize + 8 * (i % 7));
  };
  for (Bytes i = 0; i < kPages; ++i) *word(last, i) = i + 1;
  for (Bytes i = 0; i < kPages; ++i) ASSERT_EQ(*word(last, i), i + 1);  // read copies now
  std::mt19937_64 random(5);
  for (Bytes i = 0; i < kPages; ++i) {
    const Bytes page = random() % kPages;
    ASSERT_GE(*word(last, page), page + 1);
    if (i % 3 == 0) *word(last, page) += kPages;
  }
  for (Bytes i = 0; i < kPages; ++i) ASSERT_EQ(*word(0, i) % kPages, (i + 1) % kPages);
  const Statistics statistics = cluster.engine(last).statistics();
  EXPECT_GT(statistics.pages_evicted, kPages);
  EXPECT_LT(statistics.memory_max, kLimit + kLimit / 4);
  EXPECT_GT(statistics.memory_max, kLimit / 2);
}

// Both nodes evict what the other one works on too.
TEST_P(EngineTest, NoAdditionIsLostThoughPagesAreEvicted) {
  constexpr Bytes kLimit = 8 * base::kMiB, kPages = 3000;
  constexpr int kAdditions = 6000;
  Engine::Settings settings;
  settings.memory = kLimit;
  TestCluster cluster(nodes(), settings);
  on_all_nodes(nodes(), [&](std::uint32_t node) {
    std::mt19937_64 random(node);
    for (int i = 0; i < kAdditions; ++i) {
      const auto home = static_cast<std::uint32_t>(random() % nodes());
      cluster.at<Counter>(node, home, random() % kPages * kPageSize)->fetch_add(1);
    }
  });
  std::uint64_t sum = 0;
  for (std::uint32_t home = 0; home < nodes(); ++home)
    for (Bytes i = 0; i < kPages; ++i) sum += *cluster.at<Counter>(0, home, i * kPageSize);
  EXPECT_EQ(sum, std::uint64_t{kAdditions} * nodes());
  if (nodes() == 1) return;
  EXPECT_GT(cluster.engine(0).statistics().pages_evicted, 0U);
}

INSTANTIATE_TEST_SUITE_P(Nodes, EngineTest, ::testing::Values(1U, 2U, 3U, 4U),
                         [](const auto& test) { return std::to_string(test.param) + "Nodes"; });

}  // namespace
}  // namespace amasia::dsm
