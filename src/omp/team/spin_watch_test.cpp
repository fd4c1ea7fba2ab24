// SPDX-License-Identifier: Apache-2.0
#include "omp/team/spin_watch.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace amasia::omp {
namespace {

// As a program has it that waits for a flag without calling anything.
[[gnu::noinline]] void wait_for(const volatile int& flag, int value) {
  while (flag != value) {
  }
}

constexpr int kThreads = 3;

// Threads on one core pass a turn round, so often; what a turn takes.
Nanos turn_among_threads(SpinWatch* watch, int rounds) {
  volatile int turn = 0;
  const int core = sched_getcpu();
  std::vector<std::thread> threads;
  const Nanos began = os::monotonic_now();
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      EXPECT_TRUE(os::pin_to_core(core).ok());
      WatchedTeam::run(watch, static_cast<std::uint32_t>(number), [&] {
        for (int round = 0; round < rounds; ++round) {
          wait_for(turn, round * kThreads + number);
          turn = turn + 1;
        }
      });
    });
  }
  for (auto& thread : threads) thread.join();
  return (os::monotonic_now() - began) / (std::int64_t{rounds} * kThreads);
}

TEST(SpinWatch, ThreadsThatSpinOnOneCoreGiveItToEachOther) {
  SpinWatch& watch = SpinWatch::of_process();
  const auto* const code = reinterpret_cast<const unsigned char*>(&wait_for);
  const std::vector<unsigned char> before(code, code + 16);
  const Nanos unwatched = turn_among_threads(nullptr, 20);
  EXPECT_FALSE(watch.watches());
  Nanos watched = 0;
  {
    const WatchedTeam team(&watch);
    EXPECT_TRUE(watch.watches());
    turn_among_threads(&watch, 40);  // in which it is seen how they wait
    watched = turn_among_threads(&watch, 2000);
  }
  EXPECT_FALSE(watch.watches());
  EXPECT_GT(watch.loops(), 0u);
  EXPECT_LT(watched, unwatched / 4) << "a turn of " << unwatched << " ns unwatched";
  EXPECT_EQ(std::vector<unsigned char>(code, code + 16), before) << "traps go with the team";
}

// One of the loops that it knows is met by a team that begins later, and by a thread that comes to
// a trap that has just been taken away.
TEST(SpinWatch, TeamsComeAndGo) {
  SpinWatch& watch = SpinWatch::of_process();
  {
    const WatchedTeam team(&watch);
    turn_among_threads(&watch, 100);
  }
  std::atomic<bool> done{false};
  std::jthread teams([&] {
    while (!done.load()) {
      const WatchedTeam team(&watch);
      std::this_thread::yield();
    }
  });
  turn_among_threads(&watch, 100);
  done.store(true);
}

}  // namespace
}  // namespace amasia::omp
