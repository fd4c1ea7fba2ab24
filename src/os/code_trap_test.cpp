// SPDX-License-Identifier: Apache-2.0
#include "os/code_trap.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "os/os.hpp"

// Adds one to what it is given, at a place that is known.
extern "C" std::int64_t amasia_test_add_one(std::int64_t value);
extern "C" const std::uint8_t amasia_test_addition[], amasia_test_after_addition[];
asm(R"(
  .text
  .globl amasia_test_add_one, amasia_test_addition, amasia_test_after_addition
amasia_test_add_one:
  movq %rdi, %rax
amasia_test_addition:
  addq $1, %rax
amasia_test_after_addition:
  ret
)");

namespace amasia::os {
namespace {

std::uintptr_t place(const void* code) { return reinterpret_cast<std::uintptr_t>(code); }

struct Skip final : Trapper {
  std::uintptr_t trapped(std::uintptr_t at, std::uint64_t) noexcept override {
    if (at != place(amasia_test_addition)) return 0;
    handler_stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    ++trapped_so_often;
    return place(amasia_test_after_addition);
  }
  std::atomic<int> trapped_so_often{0};
  std::atomic<std::uintptr_t> handler_stack{0};
};
Skip skip;

TEST(CodeTrap, WhoComesThereGoesOnElsewhere) {
  ASSERT_TRUE(catch_traps(skip).ok());
  ASSERT_TRUE(catch_traps(skip).ok()) << "once more";
  EXPECT_TRUE(catches_traps());
  ASSERT_TRUE(have_alternate_stack().ok());
  const std::uint8_t before = *amasia_test_addition;
  EXPECT_EQ(amasia_test_add_one(41), 42);
  ASSERT_TRUE(write_code(place(amasia_test_addition), kBreakpoint));
  errno = 7;
  EXPECT_EQ(amasia_test_add_one(41), 41);
  EXPECT_EQ(errno, 7);
  EXPECT_EQ(skip.trapped_so_often, 1);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  EXPECT_GT(std::max(here, skip.handler_stack.load()) - std::min(here, skip.handler_stack.load()),
            64u * 1024);
  ASSERT_TRUE(write_code(place(amasia_test_addition), before));
  EXPECT_EQ(amasia_test_add_one(41), 42);
}

TEST(CodeTrap, ComesAndGoesWhileThreadsAreThere) {
  ASSERT_TRUE(catch_traps(skip).ok());
  const std::uint8_t before = *amasia_test_addition;
  std::atomic<bool> done{false};
  std::thread thread([&] {
    while (!done) {
      const std::int64_t sum = amasia_test_add_one(41);
      ASSERT_TRUE(sum == 41 || sum == 42);
    }
  });
  const int until = skip.trapped_so_often + 2000;
  while (skip.trapped_so_often < until) {
    ASSERT_TRUE(write_code(place(amasia_test_addition), kBreakpoint));
    ASSERT_TRUE(write_code(place(amasia_test_addition), before));
  }
  done = true;
  thread.join();
}

TEST(CodeTrapDeathTest, ABreakpointOfTheProgramsEndsItAsItWould) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        if (!catch_traps(skip).ok()) std::abort();
        asm volatile("int3");
      },
      testing::KilledBySignal(SIGTRAP), "");
  EXPECT_EXIT(
      {
        if (!catch_traps(skip).ok()) std::abort();
        ::raise(SIGTRAP);
      },
      testing::KilledBySignal(SIGTRAP), "");
}

TEST(CodeTrap, AHandlerOfTheProgramsIsNoticed) {
  ASSERT_TRUE(catch_traps(skip).ok());
  struct sigaction ours {};
  ASSERT_EQ(::sigaction(SIGTRAP, nullptr, &ours), 0);
  ::signal(SIGTRAP, SIG_DFL);
  EXPECT_FALSE(catches_traps());
  ASSERT_EQ(::sigaction(SIGTRAP, &ours, nullptr), 0);
  EXPECT_TRUE(catches_traps());
}

}  // namespace
}  // namespace amasia::os
