// SPDX-License-Identifier: Apache-2.0
// Locks over the loopback fabric: threads of several nodes on few locks.
#include "omp/locks/lock_service.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "omp/frame.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

void sleep_for(Nanos time) { std::this_thread::sleep_for(std::chrono::nanoseconds(time)); }

class TestServices final : public Services {
 public:
  Result<ManagedStack> acquire_stack() override { return Error{"not needed here", 0}; }
  [[noreturn]] void abort_job(std::string_view why) override {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(why.size()), why.data());
    std::abort();
  }
  void note_pause() override {
    if (!holds_up_.exchange(false)) return;
    is_held_up_.store(true);
    while (is_held_up_.load()) sleep_for(base::kMillisecond);
  }

  // The next thread that waits for a lock does not look at it before let_go().
  void hold_up_next_pause() { holds_up_.store(true); }
  void wait_for_pause() const {
    while (!is_held_up_.load()) sleep_for(base::kMillisecond);
  }
  void let_go() { is_held_up_.store(false); }

 private:
  std::atomic<bool> holds_up_{false}, is_held_up_{false};
};

// Not the origin only, so that every node is a home.
NodeId spread_homes(LockKey key) { return NodeId{static_cast<std::uint16_t>(key % 3)}; }

class Job {
 public:
  explicit Job(std::uint32_t nodes, LockService::HomeOf home_of = LockService::origin_is_home)
      : network_(fabric::make_loopback(nodes)) {
    for (std::uint16_t id = 0; id < nodes; ++id) {
      fabric::Fabric& fabric = network_->fabric(NodeId{id});
      locks_.push_back(std::make_unique<LockService>(fabric, services_, 0x280, home_of));
      pollers_.emplace_back([&fabric](std::stop_token stop) {
        while (!stop.stop_requested()) {
          fabric::wait_and_poll(fabric, 16, 0, base::kMillisecond);
        }
      });
    }
  }
  ~Job() {
    for (auto& poller : pollers_) poller.request_stop();
  }

  LockService& on(std::uint32_t node) { return *locks_[node]; }
  TestServices& services() { return services_; }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(locks_.size()); }

 private:
  std::unique_ptr<fabric::LoopbackNetwork> network_;
  TestServices services_;
  std::vector<std::unique_ptr<LockService>> locks_;
  std::vector<std::jthread> pollers_;
};

template <typename Function>
void on_threads(Job& job, std::uint32_t threads_per_node, Function function) {
  std::vector<std::jthread> threads;
  for (std::uint32_t node = 0; node < job.nodes(); ++node) {
    for (std::uint32_t t = 0; t < threads_per_node; ++t) {
      threads.emplace_back([&, node, t] { function(job.on(node), node * threads_per_node + t); });
    }
  }
}

TEST(LockService, CountsAreRightUnderContentionAndTries) {
  for (const auto home_of : {LockService::origin_is_home, spread_homes}) {
    constexpr std::uint32_t kLocks = 4, kRounds = 400;
    Job job(3, home_of);
    std::array<std::uint64_t, kLocks> counts{};  // plain: what the locks are for
    std::atomic<std::uint64_t> done{0};
    on_threads(job, 2, [&](LockService& locks, std::uint32_t id) {
      std::mt19937 random(id);
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const LockKey key = 0x1000 + random() % kLocks;
        const bool attempt = random() % 3 == 0;
        if (attempt && !locks.try_acquire(key)) continue;
        if (!attempt) locks.acquire(key);
        ++counts[key - 0x1000];
        done.fetch_add(1);
        locks.release(key);
      }
    });
    std::uint64_t sum = 0;
    for (const auto count : counts) sum += count;
    EXPECT_EQ(sum, done.load());
    EXPECT_GT(sum, 6u * kRounds / 2);
  }
}

// Each node has locks that it mostly takes alone, so that they rest there, and sometimes others'.
TEST(LockService, LocksThatRestComeWhenAnotherNodeWantsThem) {
  for (const auto home_of : {LockService::origin_is_home, spread_homes}) {
    constexpr std::uint32_t kOfEach = 3, kRounds = 30000;
    Job job(3, home_of);
    std::array<std::uint64_t, 3 * kOfEach> counts{};
    on_threads(job, 2, [&](LockService& locks, std::uint32_t id) {
      std::mt19937 random(id);
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const std::uint32_t node = random() % 500 == 0 ? random() % 3 : id / 2;
        const std::uint32_t which = node * kOfEach + random() % kOfEach;
        if (random() % 4 != 0) {
          locks.acquire(0x1000 + which);
        } else {
          while (!locks.try_acquire(0x1000 + which)) std::this_thread::yield();
        }
        ++counts[which];
        locks.release(0x1000 + which);
      }
    });
    std::uint64_t sum = 0;
    for (const auto count : counts) sum += count;
    EXPECT_EQ(sum, 6u * kRounds);
  }
}

// After the threads of another node have used them all, those of one that is alone.
TEST(LockService, LocksAroundAFetchedOneAreFetchedOnce) {
  constexpr LockKey kFirst = 0x10000, kEach = 4, kLocks = 4000;
  Job job(2);
  const auto use_all = [](LockService& locks) {
    for (LockKey number = 0; number < kLocks; ++number) {
      locks.acquire(kFirst + number * kEach);
      locks.release(kFirst + number * kEach);
    }
  };
  use_all(job.on(1));
  EXPECT_EQ(job.on(1).statistics().tokens_fetched, kLocks);
  // Another one's, which has it while they come.
  const LockKey held = kFirst + (kLocks / 2 + 5) * kEach;
  job.on(1).acquire(held);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    job.on(1).release(held);
  });
  use_all(job.on(0));
  other.join();
  EXPECT_EQ(job.on(0).statistics().tokens_fetched, kLocks);
  use_all(job.on(0));
  EXPECT_EQ(job.on(0).statistics().tokens_fetched, kLocks);
  use_all(job.on(1));
}

TEST(LockService, TryFailsWhileAnotherNodeHoldsTheLock) {
  Job job(2);
  job.on(0).acquire(7);
  EXPECT_FALSE(job.on(0).try_acquire(7));
  EXPECT_FALSE(job.on(1).try_acquire(7));
  job.on(0).release(7);
  EXPECT_TRUE(job.on(1).try_acquire(7));
  EXPECT_FALSE(job.on(0).try_acquire(7));
  job.on(1).release(7);
  EXPECT_EQ(job.on(1).statistics().tokens_fetched, 1u);
}

TEST(LockService, NestLocksBelongToTheirThread) {
  Job job(2);
  std::uint64_t count = 0;
  on_threads(job, 2, [&](LockService& locks, std::uint32_t) {
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(locks.acquire_nested(9), 1u);
      EXPECT_EQ(locks.acquire_nested(9), 2u);
      EXPECT_EQ(locks.try_acquire_nested(9), 3u);
      ++count;
      EXPECT_EQ(locks.release_nested(9), 2u);
      EXPECT_EQ(locks.release_nested(9), 1u);
      ++count;
      EXPECT_EQ(locks.release_nested(9), 0u);
      if (locks.try_acquire_nested(9) == 1) locks.release_nested(9);
    }
  });
  EXPECT_EQ(count, 800u);
}

// By which it is known who may go on as another thread.
TEST(LockService, ThreadsKnowHowManyTheyHold) {
  Job job(2);
  LockService& locks = job.on(1);
  ThreadFrame frame;
  thread_context.frame = &frame;
  locks.acquire(5);
  EXPECT_TRUE(locks.try_acquire(6));
  EXPECT_FALSE(locks.try_acquire(6));
  EXPECT_EQ(frame.locks_held, 2);
  locks.acquire_nested(9, 1);
  locks.acquire_nested(9, 1);
  EXPECT_EQ(locks.try_acquire_nested(9, 1), 3u);
  EXPECT_EQ(frame.locks_held, 5);
  locks.release(5);
  locks.release(6);
  for (int i = 0; i < 3; ++i) locks.release_nested(9);
  EXPECT_EQ(frame.locks_held, 0);
  thread_context.frame = nullptr;
}

TEST(LockService, ForgottenLocksLeaveNothing) {
  Job job(2);
  for (LockKey key = 1; key < 3000; ++key) {
    LockService& user = job.on(key % 2);
    user.acquire(key * 8);
    user.release(key * 8);
    user.forget(key * 8);
  }
  // The tokens' ways home are messages, which end some time.
  while (job.on(0).statistics().entries + job.on(1).statistics().entries > 0) {
    std::this_thread::yield();
  }
}

// One thread on each node that comes back at once: a token that went with each release would be
// fetched as often as the lock is taken.
TEST(LockService, TokensLingerWhereThreadsComeBackSoon) {
  constexpr std::uint32_t kRounds = 20000;
  for (const std::uint32_t nodes : {2u, 3u}) {
    Job job(nodes);
    std::uint64_t count = 0;
    on_threads(job, 1, [&](LockService& locks, std::uint32_t) {
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        locks.acquire(8);
        ++count;
        locks.release(8);
      }
      locks.note_pause(os::monotonic_now());
    });
    EXPECT_EQ(count, nodes * kRounds);
    std::uint64_t fetched = 0;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      fetched += job.on(node).statistics().tokens_fetched;
    }
    EXPECT_LT(fetched, count / 8);
  }
}

// The first fetches meet a node that uses the lock for long, and then tokens linger: what a fetch
// takes is known all the same, by the nudges.
TEST(LockService, WhatAFetchTakesIsLearntThoughTokensLinger) {
  constexpr Nanos kHeld = 5 * base::kMillisecond, kApart = 700 * base::kMicrosecond;
  const auto compute = [](Nanos time) {
    for (const Nanos end = os::monotonic_now() + time; os::monotonic_now() < end;) {
      __builtin_ia32_pause();
    }
  };
  // Where others have the cores a fetch does take that long, until they let go of them.
  Nanos longest = kHeld;
  const Nanos deadline = os::monotonic_now() + 60 * base::kSecond;
  while (longest >= kApart / 2 && os::monotonic_now() < deadline) {
    Job job(2);
    on_threads(job, 1, [&](LockService& locks, std::uint32_t) {
      for (int round = 0; round < 8; ++round) {
        locks.acquire(8);
        compute(kHeld);
        locks.release(8);
      }
      for (int round = 0; round < 200; ++round) {
        compute(kApart);
        locks.acquire(8);
        locks.release(8);
      }
    });
    longest = std::max(job.on(0).statistics().fetch, job.on(1).statistics().fetch);
  }
  EXPECT_LT(longest, kApart / 2);
}

// A thread that was always back soon stays away, without a pause: whoever waits nudges.
TEST(LockService, ATokenThatLingersInVainComesAllTheSame) {
  Job job(2);
  std::atomic<bool> stays_away{false};
  std::atomic<std::uint64_t> others{0};
  std::jthread other([&] {
    while (!stays_away.load()) {
      job.on(1).acquire(8);
      others.fetch_add(1);
      job.on(1).release(8);
    }
    for (int round = 0; round < 100; ++round) {
      job.on(1).acquire(8);
      job.on(1).release(8);
    }
  });
  for (std::uint32_t round = 0; round < 20000 || others.load() == 0; ++round) {
    job.on(0).acquire(8);
    job.on(0).release(8);
  }
  stays_away.store(true);
  other.join();
  EXPECT_GT(others.load(), 0u);
}

// A thread is woken for a lock that its node has, and before it looks the token has gone to a node
// where it lingers: it did not hear of that, and waited for ever where that node's thread ended
// without a pause.
TEST(LockService, ATokenThatLingersReachesAThreadThatWasWokenInVain) {
  constexpr Nanos kNotSoon = 3 * base::kMillisecond;  // more than twice the longest fetch
  constexpr int kTurn = 17;  // hand-overs of a node, where others wait
  const auto use = [](LockService& locks) {
    locks.acquire(8);
    locks.release(8);
  };
  for (int round = 0; round < 3; ++round) {
    Job job(2);
    use(job.on(1));
    for (int soon = 0; soon < 100; ++soon) use(job.on(0));
    sleep_for(kNotSoon);
    job.on(1).acquire(8);
    job.services().hold_up_next_pause();
    std::jthread woken([&] { use(job.on(1)); });
    job.services().wait_for_pause();
    std::atomic<bool> stays_away{false};
    std::jthread other([&] {
      for (int use_of_it = 0; use_of_it < 1000; ++use_of_it) use(job.on(0));
      stays_away.store(true);
    });
    sleep_for(kNotSoon);
    for (int hand_over = 1; hand_over < kTurn; ++hand_over) {
      job.on(1).release(8);
      sleep_for(kNotSoon);
      job.on(1).acquire(8);
    }
    job.on(1).release(8);
    const Nanos deadline = os::monotonic_now() + base::kSecond;
    while (!stays_away.load() && os::monotonic_now() < deadline) sleep_for(base::kMillisecond);
    job.services().let_go();
  }
}

// sox hands locks from thread to thread.
TEST(LockService, AnotherNodesThreadMayUnsetALock) {
  Job job(3);
  std::array<std::uint64_t, 4> counts{};
  for (std::uint32_t round = 0; round < 300; ++round) {
    const LockKey key = 8 + round % counts.size();
    job.on(round % 3).acquire(key);
    EXPECT_FALSE(job.on((round + 1) % 3).try_acquire(key));
    ++counts[round % counts.size()];
    job.on((round / 3) % 3).release(key);
    // Another thread gets it although the release is still on its way.
    job.on((round + 2) % 3).acquire(key);
    ++counts[round % counts.size()];
    job.on((round + 1) % 3).release(key);
  }
  for (const auto count : counts) EXPECT_EQ(count, 150u);
}

TEST(LockService, AnotherNodesThreadMayUnsetANestLock) {
  Job job(2);
  EXPECT_EQ(job.on(0).acquire_nested(9), 1u);
  EXPECT_EQ(job.on(0).acquire_nested(9), 2u);
  job.on(1).release_nested(9);
  job.on(1).release_nested(9);
  EXPECT_EQ(job.on(1).acquire_nested(9), 1u);
  EXPECT_EQ(job.on(1).release_nested(9), 0u);
}

TEST(LockServiceDeathTest, UnsettingWhatNobodySetEndsTheJobWithASentence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Job job(1);
        job.on(0).release(5);
      },
      "lock at 0x5 was unset on node 0, but no thread of the program has set it");
  EXPECT_DEATH(
      {
        Job job(3);
        job.on(1).release(5);
        std::this_thread::sleep_for(std::chrono::seconds(10));
      },
      "lock at 0x5 was unset on node 1, but no thread of the program has set it");
}

}  // namespace
}  // namespace amasia::omp
