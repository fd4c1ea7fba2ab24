// SPDX-License-Identifier: Apache-2.0
// The holding policy in virtual time, on what nodes contend for: every thread makes progress in
// every 100 ms.
#include <gtest/gtest.h>

#include "dsm/protocol/cluster_simulation.hpp"

namespace amasia::dsm::protocol {
namespace {

constexpr int kRepeat = 8;  // accesses that one simulated access stands for, to save time

Program atomics_on(int pages) {
  return [pages](std::uint64_t, std::mt19937_64& random) -> Access {
    return {Access::kAdd, static_cast<int>(random() % pages), 0, kRepeat};
  };
}

Program false_sharing(int thread) {
  return [thread](std::uint64_t, std::mt19937_64&) -> Access {
    return {Access::kAdd, 0, thread % kWords, kRepeat};
  };
}

Program one_percent_shared(int thread) {
  return [thread](std::uint64_t, std::mt19937_64& random) -> Access {
    const bool shared = random() % 100 == 0;
    return {Access::kAdd, shared ? 0 : 1 + thread, 0, 1};
  };
}

Program page_pair() {
  return [](std::uint64_t, std::mt19937_64&) -> Access { return {Access::kAdd, 0, 0, 1, 1}; };
}

// Test and test-and-set; the data lie on the lock's page or on the next one.
Program locked_addition(int data_page) {
  enum Step { kLook, kTry, kAdd, kRelease };
  return [data_page, step = kLook](std::uint64_t last, std::mt19937_64&) mutable -> Access {
    Access access{Access::kLoad, 0, 0, 1};
    access.counts = false;
    if (step == kLook) {
      step = kTry;
      return access;
    }
    if (step == kTry && last == 0) {
      step = kAdd;
      access.kind = Access::kTake;
      return access;
    }
    if (step == kAdd && last == 0) {
      step = kRelease;
      return {Access::kAdd, data_page, 1, 1};
    }
    if (step == kRelease) {
      step = kLook;
      access.kind = Access::kStore;
      access.value = 0;
      return access;
    }
    step = kTry;  // taken: look again
    return access;
  };
}

Program ping_pong(int thread, int threads) {
  return
      [thread, threads, looking = false](std::uint64_t last, std::mt19937_64&) mutable -> Access {
        if (looking && last % threads == static_cast<std::uint64_t>(thread)) {
          looking = false;
          return {Access::kAdd, 0, 0, 1};
        }
        looking = true;
        Access access{Access::kLoad};
        access.counts = false;
        return access;
      };
}

struct Workload {
  const char* name;
  int pages;
  Program (*program)(int thread, int threads);
};

const Workload kWorkloads[] = {
    {"OnePage", 1, [](int, int) { return atomics_on(1); }},
    {"FourPages", 4, [](int, int) { return atomics_on(4); }},
    {"SixtyFourPages", 64, [](int, int) { return atomics_on(64); }},
    {"Lock", 1, [](int, int) { return locked_addition(0); }},
    {"LockAndData", 2, [](int, int) { return locked_addition(1); }},
    {"PingPong", 1, [](int thread, int threads) { return ping_pong(thread, threads); }},
    {"FalseSharing", 1, [](int thread, int) { return false_sharing(thread); }},
    {"OnePercentShared", 9, [](int thread, int) { return one_percent_shared(thread); }},
    {"InstructionOnTwoPages", 2, [](int, int) { return page_pair(); }},
};

class Contention : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Contention, EveryThreadMakesProgressInEvery100Milliseconds) {
  const Workload& workload = kWorkloads[std::get<0>(GetParam())];
  SimulationSettings settings;
  settings.nodes = std::get<1>(GetParam());
  settings.pages = workload.pages;
  settings.end = 400 * base::kMillisecond;
  ClusterSimulation simulation(settings);
  for (int i = 0; i < settings.nodes; ++i)
    simulation.add_thread(workload.program(i, settings.nodes));
  ASSERT_EQ(simulation.run(), "");
  EXPECT_GE(simulation.now(), settings.end - base::kMillisecond) << "everything stopped";
  EXPECT_GE(simulation.least_in_a_bucket(), 1U);
  settings.hold = false;
  ClusterSimulation at_once(settings);
  for (int i = 0; i < settings.nodes; ++i) at_once.add_thread(workload.program(i, settings.nodes));
  ASSERT_EQ(at_once.run(), "");
  std::printf(
      "%lu accesses, least %lu, %lu holds, %lu probes, %lu faults; at once %lu, least %lu\n",
      simulation.total(), simulation.least_in_a_bucket(), simulation.holds(), simulation.probes(),
      simulation.faults(), at_once.total(), at_once.least_in_a_bucket());
}

INSTANTIATE_TEST_SUITE_P(Workloads, Contention,
                         testing::Combine(testing::Range(0, 9), testing::Values(2, 4)),
                         [](const testing::TestParamInfo<std::tuple<int, int>>& tested) {
                           return std::string(kWorkloads[std::get<0>(tested.param)].name) + "On" +
                                  std::to_string(std::get<1>(tested.param));
                         });

constexpr int kSweeps = 256;  // by all threads together
constexpr int kSweptPages = 512;
constexpr Nanos kSweepCost = base::kMicrosecond;  // for each page

// Each thread writes its words of every page of an array, again and again: columns of rows that are
// shorter than a page.
Program sweeps(int thread, int pages, int count) {
  return [thread, pages, left = count * pages](std::uint64_t, std::mt19937_64&) mutable -> Access {
    if (left == 0) return {};
    --left;
    return {Access::kAdd, left % pages, thread % kWords, 1, -1, kSweepCost};
  };
}

Nanos time_of_sweeps(int nodes, bool stretch) {
  SimulationSettings settings;
  settings.nodes = nodes;
  settings.pages = kSweptPages;
  settings.stretch = stretch;
  settings.end = 200 * base::kSecond;
  ClusterSimulation simulation(settings);
  for (int i = 0; i < nodes; ++i) simulation.add_thread(sweeps(i, kSweptPages, kSweeps / nodes));
  EXPECT_EQ(simulation.run(), "");
  EXPECT_TRUE(simulation.all_done());
  return simulation.now();
}

TEST(Contention, SweepsOverSharedPagesCostLittleMoreThanOneNodeAlone) {
  constexpr Nanos kAlone = kSweeps * kSweptPages * kSweepCost;
  for (const int nodes : {2, 3, 4}) {
    const Nanos usual = time_of_sweeps(nodes, false);
    const Nanos stretched = time_of_sweeps(nodes, true);
    std::printf("%d nodes: alone %.0f ms, in usual turns %.0f ms, in stretched ones %.0f ms\n",
                nodes, 1e-6 * kAlone, 1e-6 * usual, 1e-6 * stretched);
    EXPECT_GT(usual, 20 * kAlone);
    EXPECT_LT(stretched, 6 * kAlone);
  }
}

}  // namespace
}  // namespace amasia::dsm::protocol
