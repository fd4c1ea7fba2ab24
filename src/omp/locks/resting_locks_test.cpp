// SPDX-License-Identifier: Apache-2.0
#include "omp/locks/resting_locks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace amasia::omp {
namespace {

using Answer = RestingLocks::Answer;
constexpr LockKey kKey = 0x7f0012345678;

TEST(RestingLocks, AreTakenAndGivenBack) {
  RestingLocks locks;
  EXPECT_EQ(locks.try_take(kKey), Answer::kNotHere);
  EXPECT_FALSE(locks.give_back(kKey));
  ASSERT_TRUE(locks.put(kKey, true, false));
  EXPECT_EQ(locks.try_take(kKey), Answer::kHeld);
  EXPECT_TRUE(locks.give_back(kKey));
  EXPECT_FALSE(locks.give_back(kKey)) << "it is free";
  EXPECT_EQ(locks.try_take(kKey), Answer::kTaken);
  EXPECT_EQ(locks.try_take(kKey + 8), Answer::kNotHere);
  const auto rested = locks.take_out(kKey);
  ASSERT_TRUE(rested.has_value());
  EXPECT_TRUE(rested->held);
  EXPECT_EQ(rested->released, RestingLocks::kNotTimed);
  EXPECT_FALSE(locks.give_back(kKey)) << "it does not rest any more";
  EXPECT_FALSE(locks.take_out(kKey).has_value());
}

TEST(RestingLocks, SayWhenTheyWereReleasedIfThatIsToBeNoted) {
  RestingLocks locks;
  ASSERT_TRUE(locks.put(kKey, true, true));
  EXPECT_EQ(locks.take_out(kKey)->released, RestingLocks::kNotTimed);
  ASSERT_TRUE(locks.put(kKey, true, true));
  const os::Ticks before = os::ticks_now();
  EXPECT_TRUE(locks.give_back(kKey));
  EXPECT_GE(locks.take_out(kKey)->released, before);
  ASSERT_TRUE(locks.put(kKey, false, true));
  EXPECT_EQ(locks.take_out(kKey)->released, RestingLocks::kNotTimed) << "another one's time";
  ASSERT_TRUE(locks.put(kKey, true, true));
  EXPECT_TRUE(locks.give_back_at_once(kKey));
  EXPECT_EQ(locks.take_out(kKey)->released, RestingLocks::kNotTimed);
}

// More locks of a line than it has room for: those that are held stay, free ones go.
TEST(RestingLocks, AreOnTheirShelvesWhileTheyAreHeld) {
  RestingLocks locks;
  std::vector<LockKey> held, refused;
  for (LockKey i = 1; i <= 20; ++i) {
    const LockKey key = i << 45;
    (locks.put(key, true, false) ? held : refused).push_back(key);
  }
  EXPECT_EQ(held.size(), 8u);
  ASSERT_FALSE(refused.empty());
  for (const LockKey key : held) ASSERT_EQ(locks.try_take(key), Answer::kHeld);
  for (const LockKey key : refused) ASSERT_EQ(locks.try_take(key), Answer::kNotHere);
  for (const LockKey key : held) ASSERT_TRUE(locks.give_back(key));
  std::size_t put = 0, gone = 0;
  for (const LockKey key : refused) put += locks.put(key, true, false) ? 1 : 0;
  for (const LockKey key : held) gone += locks.try_take(key) == Answer::kNotHere ? 1 : 0;
  EXPECT_GT(put, 0u);
  EXPECT_EQ(put, gone);
}

TEST(RestingLocks, ManyThatLieSideBySideHaveRoom) {
  RestingLocks locks;
  constexpr LockKey kFirst = 0x7f0000000000, kCount = 300000;
  for (LockKey i = 0; i < kCount; ++i) ASSERT_TRUE(locks.put(kFirst + 4 * i, false, false));
  for (LockKey i = 0; i < kCount; ++i) {
    ASSERT_EQ(locks.try_take(kFirst + 4 * i), Answer::kTaken) << i;
  }
}

TEST(RestingLocks, AreTakenAtOnceFromTheirOwnShelves) {
  RestingLocks locks;
  EXPECT_FALSE(locks.take_at_once(kKey));
  for (const bool timed : {false, true}) {
    ASSERT_TRUE(locks.put(kKey, false, timed));
    EXPECT_FALSE(locks.give_back_at_once(kKey)) << "it is free";
    EXPECT_TRUE(locks.take_at_once(kKey));
    EXPECT_FALSE(locks.take_at_once(kKey)) << "it is held";
    EXPECT_EQ(locks.try_take(kKey), Answer::kHeld);
    EXPECT_FALSE(locks.take_at_once(kKey + 4));
    EXPECT_FALSE(locks.give_back_at_once(kKey + 4));
    EXPECT_TRUE(locks.give_back_at_once(kKey));
    EXPECT_FALSE(locks.take_out(kKey)->held);
  }
  // Another one's shelf: the next way finds it.
  const LockKey beside = kKey + (LockKey{1} << 45);
  ASSERT_TRUE(locks.put(kKey, false, false));
  ASSERT_TRUE(locks.put(beside, false, false));
  EXPECT_FALSE(locks.take_at_once(beside));
  EXPECT_EQ(locks.try_take(beside), Answer::kTaken);
  EXPECT_FALSE(locks.give_back_at_once(beside));
  EXPECT_TRUE(locks.give_back(beside));
}

// The lock's state is on its shelf or with its owner. Threads take it where they find it; one moves
// it back and forth.
TEST(RestingLocks, AreHeldByOneThreadWhereverTheyAre) {
  RestingLocks locks;
  std::mutex mutex;
  bool here = true;           // not resting; under the mutex, as is the next
  bool held_here = false;
  std::uint64_t count = 0;    // plain: what the lock is for
  constexpr std::uint32_t kThreads = 3, kRounds = 20000;
  const auto take = [&] {
    for (;;) {
      if (locks.try_take(kKey) == Answer::kTaken) return;
      const std::lock_guard lock(mutex);
      if (here && !held_here) {
        held_here = true;
        return;
      }
    }
  };
  const auto give_back = [&] {
    if (locks.give_back(kKey)) return;
    const std::lock_guard lock(mutex);
    if (const auto rested = locks.take_out(kKey)) {
      here = true;
      held_here = rested->held;
    }
    ASSERT_TRUE(here && held_here);
    held_here = false;
  };
  std::atomic<bool> done{false};
  std::jthread mover([&] {
    std::mt19937 random(1);
    while (!done.load()) {
      const std::lock_guard lock(mutex);
      if (here && random() % 2 == 0) {
        here = !locks.put(kKey, held_here, random() % 2 == 0);
      } else if (const auto rested = locks.take_out(kKey)) {
        here = true;
        held_here = rested->held;
      }
    }
  });
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t id = 0; id < kThreads; ++id) {
      threads.emplace_back([&] {
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          take();
          ++count;
          give_back();
        }
      });
    }
  }
  done.store(true);
  EXPECT_EQ(count, std::uint64_t{kThreads} * kRounds);
}

}  // namespace
}  // namespace amasia::omp
