// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/watch.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <thread>

namespace amasia::devices {
namespace {

static_assert(pause_before_look(0) == 0 && pause_before_look(90 * base::kMicrosecond) == 0);
static_assert(pause_before_look(1600 * base::kMicrosecond) == 100 * base::kMicrosecond);
static_assert(pause_before_look(base::kSecond) == base::kMillisecond, "however long it takes");

struct Told final : Completion {
  void finished(Outcome&&) noexcept override { times.fetch_add(1); }
  std::atomic<int> times{0};
};

// Ends when it is told to, or at a time.
struct Work final : Watched {
  bool has_ended() noexcept override {
    looks.fetch_add(1);
    EXPECT_EQ(looking.fetch_add(1), 0) << "two look at once";
    const bool over = may_end.load() && os::monotonic_now() >= ends_at;
    looking.fetch_sub(1);
    return over;
  }
  void land() noexcept override {
    landed_by = os::current_thread_id();
    completion.finished({});
  }
  bool will_tell(const Completion& one) const noexcept override { return &one == &completion; }

  std::atomic<bool> may_end{true};
  Nanos ends_at = 0;
  std::atomic<int> looking{0}, looks{0};
  int landed_by = 0;
  Told completion;
};

// What has not come by then does not come: the test ends there, since the watch would not.
void await(const Work& work) {
  const Nanos deadline = os::monotonic_now() + 60 * base::kSecond;
  while (work.completion.times.load() == 0) {
    AMASIA_CHECK(os::monotonic_now() < deadline, "an end is told within a minute");
    std::this_thread::yield();
  }
}

TEST(Watch, LandsWhatHasEndedInTheOrderOfItsLine) {
  Line line, other;
  Work first, second, beside;
  first.may_end = false;
  {
    Watch watch({&line, &other});
    ASSERT_TRUE(watch.start("test-watch").ok());
    watch.send(line, first, CallerWaits::kNo);
    watch.send(line, second, CallerWaits::kNo);
    watch.send(other, beside, CallerWaits::kNo);
    await(beside);
    EXPECT_EQ(second.completion.times, 0) << "it stands after one that has not ended";
    first.may_end = true;
  }
  EXPECT_EQ(first.completion.times, 1);
  EXPECT_EQ(second.completion.times, 1) << "the watch ends when nothing stands there any more";
}

TEST(Watch, WakesForWhatComesWhenItSleeps) {
  Line line;
  Watch watch({&line});
  ASSERT_TRUE(watch.start("test-watch").ok());
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 4));
    Work work;
    watch.send(line, work, CallerWaits::kNo);
    await(work);
  }
}

TEST(Watch, AThreadThatWaitsLooksItself) {
  Line line;
  Watch watch({&line});
  ASSERT_TRUE(watch.start("test-watch").ok());
  // On a loaded machine it may be put off for so long that the watch's thread looks for it.
  const Nanos deadline = os::monotonic_now() + 20 * base::kSecond;
  bool both = false;
  while (!both && os::monotonic_now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until the watch's thread sleeps
    Work before, work;
    before.ends_at = os::monotonic_now() + 20 * base::kMicrosecond;
    watch.send(line, before, CallerWaits::kAtOnce);  // and is not waited for
    watch.send(line, work, CallerWaits::kAtOnce);
    Watch::wait_sent(work.completion, os::monotonic_now() + base::kSecond);
    await(before);
    await(work);
    const int me = os::current_thread_id();
    both = work.landed_by == me && before.landed_by == me;
  }
  EXPECT_TRUE(both);
}

// Whoever has waited for long enough, or has waited already, leaves it to the thread.
TEST(Watch, WhatIsNotWaitedForAnyMoreIsLookedAt) {
  Line line;
  Watch watch({&line});
  ASSERT_TRUE(watch.start("test-watch").ok());
  Work work;
  work.may_end = false;
  watch.send(line, work, CallerWaits::kAtOnce);
  Watch::wait_sent(work.completion, os::monotonic_now() + 5 * base::kMicrosecond);
  EXPECT_EQ(work.completion.times, 0);
  Watch::wait_sent(work.completion, os::monotonic_now() + base::kSecond);  // returns at once
  work.may_end = true;
  await(work);
  EXPECT_NE(work.landed_by, os::current_thread_id());
}

// Who may be about to wait is left alone with its line for a moment, and not relied on.
TEST(Watch, WhatIsPerhapsWaitedFor) {
  Line line;
  Watch watch({&line});
  ASSERT_TRUE(watch.start("test-watch").ok());
  Watch::forget_sent();
  Work at_once;
  watch.send(line, at_once, CallerWaits::kPerhaps);
  EXPECT_EQ(line.left_until, 0) << "this thread was not seen to wait";
  await(at_once);
  // On a loaded machine it may be put off for so long that the watch's thread looks for it.
  const Nanos deadline = os::monotonic_now() + 20 * base::kSecond;
  const auto waits_for_one = [&] {
    Work work;
    work.ends_at = os::monotonic_now() + kLeftToCaller / 2;
    watch.send(line, work, CallerWaits::kPerhaps);
    Watch::wait_sent(work.completion, os::monotonic_now() + base::kSecond);
    await(work);
    return work.landed_by == os::current_thread_id();
  };
  for (int mine = 0; mine < 100 && os::monotonic_now() < deadline;) mine += waits_for_one();
  EXPECT_LT(os::monotonic_now(), deadline);
  Work unattended;
  const Nanos sent = os::monotonic_now();
  watch.send(line, unattended, CallerWaits::kPerhaps);
  await(unattended);
  EXPECT_GE(os::monotonic_now(), sent + kLeftToCaller);
  EXPECT_NE(unattended.landed_by, os::current_thread_id());
}

// Who is used to wait does not call the watch's thread, which looks all the same, now and then.
TEST(Watch, WhoIsUsedToWaitMayNotDoSo) {
  Line line;
  Watch watch({&line});
  ASSERT_TRUE(watch.start("test-watch").ok());
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 20; ++i) {
      Work work;
      watch.send(line, work, CallerWaits::kPerhaps);
      Watch::wait_sent(work.completion, os::monotonic_now() + base::kSecond);
      await(work);
    }
    // Until the thread looks now and then; until it sleeps for ever, and between.
    const auto since = round % 3 == 0 ? kUncalled : round % 3 == 1 ? 2 * kUncalledFor : 0;
    std::this_thread::sleep_for(std::chrono::nanoseconds(since));
    Work unattended;
    watch.send(line, unattended, CallerWaits::kPerhaps);
    await(unattended);
    Work next;
    watch.send(line, next, CallerWaits::kPerhaps);
    await(next);
  }
}

// Whose watch may have gone by then.
TEST(Watch, WhatWasSentBeforeIsNotLookedAt) {
  Line line;
  Work work;
  {
    Watch watch({&line});
    ASSERT_TRUE(watch.start("test-watch").ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // until the watch's thread sleeps
    watch.send(line, work, CallerWaits::kAtOnce);
    Watch::forget_sent();
    Watch::wait_sent(work.completion, os::monotonic_now() + base::kSecond);
    EXPECT_EQ(work.looks, 0);
  }
  EXPECT_EQ(work.completion.times, 1);
}

// Threads that send, and some that wait, each work told of once.
TEST(Watch, ManyThreadsAtOnce) {
  constexpr int kThreads = 4, kWorks = 2000;
  std::vector<std::list<Work>> all(kThreads);
  {
    Line lines[3];
    Watch watch({&lines[0], &lines[1], &lines[2]});
    ASSERT_TRUE(watch.start("test-watch").ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < kWorks; ++i) {
          Work& work = all[static_cast<std::size_t>(t)].emplace_back();
          work.ends_at = os::monotonic_now() + random() % 20'000;
          const auto waits = static_cast<CallerWaits>(random() % 3);
          watch.send(lines[random() % 3], work, waits);
          if (waits == CallerWaits::kAtOnce ||
              (waits == CallerWaits::kPerhaps && random() % 2 == 0)) {
            Watch::wait_sent(work.completion, os::monotonic_now() + random() % 100'000);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const auto& works : all) {
    for (const Work& work : works) EXPECT_EQ(work.completion.times, 1);
  }
}

}  // namespace
}  // namespace amasia::devices
