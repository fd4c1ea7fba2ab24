// SPDX-License-Identifier: Apache-2.0
#include "omp/wait_scope.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace amasia::omp {
namespace {

struct Booked {
  Nanos cpu = 0, waited = 0;
};

template <typename Function>
Booked book_wait(ThreadFrame& frame, Function&& wait) {
  const Booked before{frame.cpu, frame.waited};
  {
    const WaitScope scope(frame);
    wait();
  }
  return {frame.cpu - before.cpu, frame.waited - before.waited};
}

void sleep_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }

TEST(WaitScope, AfterABriefWaitTheNextOneIsTakenForSpun) {
  ThreadFrame frame;
  frame.measures_cpu = true;
  int guessed = 0;
  for (int i = 0; i < 50; ++i) {
    const bool after_brief = frame.waits_briefly;
    const Booked wait = book_wait(frame, [] {});
    EXPECT_EQ(frame.waits_briefly, wait.waited < WaitScope::kBrief);
    if (!after_brief) continue;
    EXPECT_EQ(wait.cpu, -std::min(wait.waited, WaitScope::kBrief));
    ++guessed;
  }
  EXPECT_GT(guessed, 0) << "of 50 waits for nothing one is brief";
}

TEST(WaitScope, ALongWaitIsMeasuredUnlessItComesAsASurprise) {
  ThreadFrame frame;
  frame.measures_cpu = true;
  while (!frame.waits_briefly) book_wait(frame, [] {});
  EXPECT_EQ(book_wait(frame, sleep_a_while).cpu, -WaitScope::kBrief);
  EXPECT_FALSE(frame.waits_briefly);
  // A thread that sleeps uses next to nothing of a core.
  const Booked measured = book_wait(frame, sleep_a_while);
  EXPECT_LT(measured.cpu, 0);
  EXPECT_GT(measured.cpu, -measured.waited / 2);
}

void compute_a_while() {
  const Nanos until = os::own_cpu_time() + 3 * base::kMillisecond;
  while (os::own_cpu_time() < until) {
  }
}

// What a thread has done so far is the same whether it is asked in a wait or before.
TEST(WaitScope, TimesSoFarAreThoseBeforeTheWait) {
  for (const bool after_brief : {false, true}) {
    ThreadFrame frame;
    frame.measures_cpu = true;
    frame.active = -os::monotonic_now();
    frame.cpu = -os::own_cpu_time();
    compute_a_while();
    frame.waits_briefly = after_brief;
    const ActiveTimes before = active_times(frame);
    EXPECT_GT(before.cpu, 2 * base::kMillisecond);
    // The clocks are read one after the other.
    EXPECT_GT(before.active, before.cpu - base::kMillisecond);
    const WaitScope scope(frame);
    sleep_a_while();
    const ActiveTimes within = active_times(frame);
    // At most what it took to ask; after a brief one, what it is taken to have spun.
    EXPECT_NEAR(within.cpu, before.cpu, base::kMillisecond);
    EXPECT_EQ(within.active, frame.active + frame.wait_began);
    EXPECT_GE(within.active, before.active);
  }
}

TEST(WaitScope, TheOutermostOneCounts) {
  ThreadFrame frame;
  const Booked wait = book_wait(frame, [&frame] { book_wait(frame, sleep_a_while); });
  EXPECT_GE(wait.waited, 3 * base::kMillisecond);
  EXPECT_EQ(frame.waits, 0u);
}

}  // namespace
}  // namespace amasia::omp
