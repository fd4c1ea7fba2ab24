// SPDX-License-Identifier: Apache-2.0
// By the kernel's own events, which are there in every virtual machine: page faults stand for
// cache misses. Only a group's first event is up to date whenever it is read.
#include "omp/team/leader_counters.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "omp/wait_scope.hpp"

namespace amasia::omp {
namespace {

constexpr std::size_t kPage = 4096;
const CounterSettings kByKernel{{os::PerfEvent::kPageFaults, os::PerfEvent::kTaskClock}, 0};

void touch_new_pages(std::size_t count) {
  void* const memory = ::mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, count * kPage, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < count; ++i) static_cast<volatile char*>(memory)[i * kPage] = 1;
  ::munmap(memory, count * kPage);
}

TEST(LeaderCounters, LeaveOutWhatHappensInWaits) {
  LeaderCounters counters(kByKernel);
  if (!counters.begin()) GTEST_SKIP() << "no performance events here";
  ThreadFrame frame;
  frame.counters = &counters;
  touch_new_pages(300);
  {
    const WaitScope waiting(frame);
    touch_new_pages(2000);
    const WaitScope nested(frame);
    touch_new_pages(2000);
  }
  touch_new_pages(200);
  const LeaderCounters::Counts counts = counters.end();
  EXPECT_GE(counts.cache_misses, 500u);
  EXPECT_LT(counts.cache_misses, 1000u);
}

TEST(LeaderCounters, BeginAgainAtZero) {
  LeaderCounters counters(kByKernel);
  if (!counters.begin()) GTEST_SKIP() << "no performance events here";
  touch_new_pages(500);
  EXPECT_GE(counters.end().cache_misses, 500u);
  ASSERT_TRUE(counters.begin());
  EXPECT_LT(counters.end().cache_misses, 100u);
}

TEST(LeaderCounters, FollowTheLeaderToAnotherThread) {
  LeaderCounters counters(kByKernel);
  if (!counters.begin()) GTEST_SKIP() << "no performance events here";
  counters.end();
  std::thread([&counters] {
    ASSERT_TRUE(counters.begin());
    touch_new_pages(400);
    EXPECT_GE(counters.end().cache_misses, 400u);
  }).join();
}

// As of a processor that shows none, or a kernel that refuses: once is enough.
TEST(LeaderCounters, ThatCannotBeHadCountNothing) {
  LeaderCounters counters({{os::PerfEvent::kCacheMisses, os::PerfEvent::kInstructions}, 0});
  if (counters.begin()) {
    EXPECT_GT(counters.end().instructions, 0u) << "this processor has them";
    return;
  }
  EXPECT_FALSE(counters.begin());
  counters.stop();
  counters.go_on();
  EXPECT_EQ(counters.end().instructions, 0u);
}

}  // namespace
}  // namespace amasia::omp
