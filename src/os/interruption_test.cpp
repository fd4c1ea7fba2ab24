// SPDX-License-Identifier: Apache-2.0
#include "os/interruption.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "os/os.hpp"
#include "os/test_await.hpp"

// Adds the numbers up to one, as a library might: with the flags on its stack for a while.
extern "C" std::int64_t amasia_test_sum(std::int64_t number);
extern "C" const std::uint8_t amasia_test_is_summed[];
asm(R"(
  .text
  .globl amasia_test_sum, amasia_test_is_summed
amasia_test_sum:
  xorl %eax, %eax
1:
  pushfq
  addq %rdi, %rax
  popfq
  decq %rdi
  jnz 1b
amasia_test_is_summed:
  ret
)");

namespace amasia::os {
namespace {

// A thread to be interrupted, and what the handler saw of it.
struct Target final : Interrupter {
  void interrupted(const InterruptedThread& thread) override {
    handler_stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    own_stack = thread.stack_pointer();
    registers = thread.registers();
    ++interruptions;
  }
  std::atomic<int> thread_id{0};
  std::atomic<bool> ends{false};
  std::atomic<int> interruptions{0};
  std::atomic<std::uintptr_t> handler_stack{0}, own_stack{0};
  InterruptedThread::Registers registers{};  // written before interruptions
};

std::atomic<int> of_the_program{0};

class Interruption : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++of_the_program; };
    ASSERT_EQ(::sigaction(SIGURG, &action, nullptr), 0);
    ASSERT_TRUE(catch_interruptions().ok());
    ASSERT_TRUE(catch_interruptions().ok()) << "once more";
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
    ASSERT_TRUE(interrupt_thread(target.thread_id, target));
    await([&] { return target.interruptions == i; });
  }
  const auto apart = static_cast<std::int64_t>(target.handler_stack - target.own_stack);
  EXPECT_GT(std::abs(apart), 16 * base::kKiB);
  target.ends = true;
  thread.join();
  EXPECT_EQ(of_the_program, 0);
}

// One that only looks has the same registers again, one that counts has not.
TEST_F(Interruption, ItsRegistersTellWhetherItGetsOn) {
  for (const bool counts : {false, true}) {
    Target target;
    std::thread thread([&] {
      target.thread_id = current_thread_id();
      if (counts) {
        std::uint64_t count = 0;
        while (!target.ends) asm volatile("addq $1, %0" : "+r"(count));
      } else {
        while (!target.ends) {
        }
      }
    });
    await([&] { return target.thread_id != 0; });
    std::set<InterruptedThread::Registers> seen;
    for (int i = 1; i <= 50; ++i) {
      ASSERT_TRUE(interrupt_thread(target.thread_id, target));
      await([&] { return target.interruptions == i; });
      seen.insert(target.registers);
      // Else the next one may find it before it has gone on.
      const Nanos then = thread_cpu_time(target.thread_id) + 100 * base::kMicrosecond;
      await([&] { return thread_cpu_time(target.thread_id) > then; });
    }
    EXPECT_EQ(seen.size() == 50, counts) << seen.size();
    target.ends = true;
    thread.join();
  }
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
  EXPECT_FALSE(interrupt_thread(target.thread_id, target));
}

TEST_F(Interruption, TheProgramsOwnSignalsAreItsOwn) {
  of_the_program = 0;
  ASSERT_EQ(::kill(::getpid(), SIGURG), 0);
  await([] { return of_the_program == 1; });
}

TEST_F(Interruption, AProgramThatTakesTheSignalIsNotDisturbed) {
  Target target;
  struct sigaction its {}, ours {};
  its.sa_handler = [](int) { ++of_the_program; };
  of_the_program = 0;
  ASSERT_EQ(::sigaction(SIGURG, &its, &ours), 0);
  EXPECT_FALSE(interrupt_thread(current_thread_id(), target));
  EXPECT_EQ(of_the_program, 0);
  ASSERT_EQ(::sigaction(SIGURG, &ours, nullptr), 0);
  EXPECT_TRUE(interrupt_thread(current_thread_id(), target));
  await([&] { return target.interruptions == 1; });
}

// Follows a thread to where it has the sum.
struct FollowsToTheSum final : Interrupter, Follower {
  void interrupted(const InterruptedThread& thread) override {
    ++begun;
    if (has_summed(thread)) {
      ++arrived;
    } else if (!follow_thread(thread, *this, *this)) {
      ++let_go;
    }
  }
  Next follow(const InterruptedThread& thread) noexcept override {
    ++steps;
    if (has_summed(thread)) return Next::kInterrupt;
    if (!thread.is_at_system_call()) return Next::kFollow;
    ++let_go;
    return Next::kLetGo;
  }
  static bool has_summed(const InterruptedThread& thread) {
    return thread.instruction() == reinterpret_cast<std::uintptr_t>(amasia_test_is_summed);
  }
  std::atomic<int> begun{0}, arrived{0}, let_go{0}, steps{0};
};

TEST_F(Interruption, AThreadIsFollowedToWhereItMayBeStopped) {
  ASSERT_TRUE(catch_steps().ok());
  ASSERT_TRUE(catch_steps().ok()) << "once more";
  for (const bool calls : {false, true}) {
    std::atomic<bool> done{false};
    std::atomic<int> id{0};
    FollowsToTheSum by;
    std::thread thread([&] {
      ASSERT_TRUE(have_alternate_stack().ok());
      id = current_thread_id();
      while (!done) {
        ASSERT_EQ(amasia_test_sum(100), 5050);
        if (!calls) continue;
        // Here it is met, and not only in the kernel, at whose exits most interruptions find it.
        for (const int met = by.begun; by.begun == met && !done;) {
        }
        ::getppid();
      }
    });
    await([&] { return id != 0; });
    for (int i = 1; i <= 200; ++i) {
      ASSERT_TRUE(interrupt_thread(id, by));
      await([&] { return by.arrived + by.let_go == i; });
    }
    done = true;
    thread.join();
    EXPECT_GT(by.steps, 200);
    // It cannot be followed into a system call.
    EXPECT_GT(calls ? by.let_go : by.arrived, 0);
    EXPECT_EQ(by.let_go > 0, calls) << by.let_go;
  }
}

}  // namespace
}  // namespace amasia::os
