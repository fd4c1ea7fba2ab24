// SPDX-License-Identifier: Apache-2.0
#include "omp/team/spin_sample.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace amasia::omp {
namespace {

[[gnu::noinline]] void spin_until(const std::atomic<int>& flag, int value) {
  while (flag.load(std::memory_order_acquire) < value) {
  }
}
[[gnu::noinline]] double count_until(const std::atomic<int>& flag, int value) {
  double sum = 0;
  while (flag.load(std::memory_order_acquire) < value) sum = 0.5 * sum + 1;
  return sum;
}

// A thread that spins, then computes, each for so much CPU time; looked at meanwhile.
class SpinSampleTest : public testing::Test, public os::Interrupter {
 protected:
  static constexpr Nanos kEach = 100 * base::kMillisecond;

  void interrupted(const os::InterruptedThread& thread) override {
    sample_.note(thread, in_our_code_);
  }

  // Until the thread has used `until` of CPU time.
  void look(int thread_id, Nanos until) {
    while (os::thread_cpu_time(thread_id) < until) {
      ASSERT_TRUE(os::interrupt_thread(thread_id, *this));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  SpinSample sample_;
  std::atomic<bool> in_our_code_{false};
};

TEST_F(SpinSampleTest, WhatAThreadSpinsIsToldFromWhatItComputes) {
  ASSERT_TRUE(os::catch_interruptions().ok());
  std::atomic<int> phase{0}, thread_id{0};
  std::thread thread([&] {
    ASSERT_TRUE(os::have_alternate_stack().ok());
    sample_.begin(reinterpret_cast<const void*>(&spin_until));
    thread_id = os::current_thread_id();
    spin_until(phase, 1);
    EXPECT_GT(count_until(phase, 2), 0);
  });
  while (thread_id == 0) std::this_thread::yield();
  look(thread_id, kEach);
  const Nanos spun = sample_.spun();
  const Nanos used = os::thread_cpu_time(thread_id);
  phase = 1;
  look(thread_id, used + kEach);
  const Nanos spun_since = sample_.spun() - spun;
  in_our_code_ = true;
  look(thread_id, os::thread_cpu_time(thread_id) + kEach);
  const Nanos waited_since = sample_.spun() - spun - spun_since;
  phase = 2;
  thread.join();
  EXPECT_GT(waited_since, kEach / 2) << "what it does in our code while others are waited for";
  EXPECT_GT(spun, used / 2) << "of " << used << " ns";
  // At most what it used from the last look in its first phase to the first one in its second.
  EXPECT_LT(spun_since, kEach / 2);
}

// Another thread's next region.
TEST_F(SpinSampleTest, ItBeginsAnew) {
  ASSERT_TRUE(os::catch_interruptions().ok());
  for (int turn = 0; turn < 2; ++turn) {
    std::atomic<int> phase{0}, thread_id{0};
    std::thread thread([&] {
      ASSERT_TRUE(os::have_alternate_stack().ok());
      sample_.begin(reinterpret_cast<const void*>(&spin_until));
      EXPECT_EQ(sample_.spun(), 0);
      thread_id = os::current_thread_id();
      spin_until(phase, 1);
    });
    while (thread_id == 0) std::this_thread::yield();
    look(thread_id, kEach / 4);
    EXPECT_GT(sample_.spun(), 0);
    EXPECT_LE(sample_.spun(), os::thread_cpu_time(thread_id));
    phase = 1;
    thread.join();
  }
}

}  // namespace
}  // namespace amasia::omp
