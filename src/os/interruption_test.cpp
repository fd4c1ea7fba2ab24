// SPDX-License-Identifier: Apache-2.0
#include "os/interruption.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "os/os.hpp"

namespace amasia::os {
namespace {

// A thread to be interrupted, and what the handler saw of it.
struct Target {
  std::atomic<int> thread_id{0};
  std::atomic<bool> ends{false};
  std::atomic<int> interruptions{0};
  std::atomic<std::uintptr_t> handler_stack{0}, own_stack{0};
};

std::atomic<int> of_the_program{0};

void note(const InterruptedThread& thread, void* argument) {
  auto& target = *static_cast<Target*>(argument);
  target.handler_stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  target.own_stack = thread.stack_pointer();
  ++target.interruptions;
}

template <typename Condition>
void await(Condition comes) {
  const Nanos deadline = monotonic_now() + 60 * base::kSecond;
  while (!comes()) {
    AMASIA_CHECK(monotonic_now() < deadline, "it comes within a minute");
    yield_core();
  }
}

class Interruption : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++of_the_program; };
    ASSERT_EQ(::sigaction(SIGURG, &action, nullptr), 0);
    ASSERT_TRUE(catch_interruptions(note).ok());
    ASSERT_TRUE(catch_interruptions(note).ok()) << "once more";
  }
};

TEST_F(Interruption, AThreadThatComputesCallsTheHandlerOnItsOtherStack) {
  Target target;
  std::thread thread([&] {
    EXPECT_TRUE(have_alternate_stack().ok());
    EXPECT_TRUE(have_alternate_stack().ok()) << "it is there";
    target.thread_id = current_thread_id();
    while (!target.ends) {
    }
  });
  await([&] { return target.thread_id != 0; });
  for (int i = 1; i <= 100; ++i) {
    EXPECT_FALSE(waits_in_system_call(target.thread_id));
    ASSERT_TRUE(interrupt_thread(target.thread_id, &target));
    await([&] { return target.interruptions == i; });
  }
  const auto apart = static_cast<std::int64_t>(target.handler_stack - target.own_stack);
  EXPECT_GT(std::abs(apart), 16 * base::kKiB);
  target.ends = true;
  thread.join();
  EXPECT_EQ(of_the_program, 0);
}

TEST_F(Interruption, AThreadThatSleepsIsKnown) {
  Target target;
  std::thread thread([&] {
    target.thread_id = current_thread_id();
    while (!target.ends) ::usleep(100'000);
  });
  await([&] { return target.thread_id != 0; });
  await([&] { return waits_in_system_call(target.thread_id); });
  target.ends = true;
  thread.join();
  EXPECT_TRUE(waits_in_system_call(target.thread_id)) << "it is gone, so nothing is known";
  EXPECT_FALSE(interrupt_thread(target.thread_id, &target));
}

TEST_F(Interruption, TheProgramsOwnSignalsAreItsOwn) {
  of_the_program = 0;
  ASSERT_EQ(::kill(::getpid(), SIGURG), 0);
  await([] { return of_the_program == 1; });
}

}  // namespace
}  // namespace amasia::os
