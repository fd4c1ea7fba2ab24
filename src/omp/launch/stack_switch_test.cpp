// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/stack_switch.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csetjmp>
#include <stdexcept>
#include <vector>

#include "omp/launch/stack_pool.hpp"

namespace amasia::omp {
namespace {

constexpr Bytes kPart = 8 * base::kMiB;

// Memory that stands in for the stack part of an arena.
class StackSwitch : public testing::Test {
 protected:
  StackSwitch() {
    base_ = static_cast<std::byte*>(
        mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~StackSwitch() override { munmap(base_, kPart); }

  std::byte* base_;
};

TEST_F(StackSwitch, RunsOnTheGivenStackAndComesBack) {
  StackPool pool(base_, kPart, base::kMiB);
  const ManagedStack stack = pool.acquire().value();
  std::uintptr_t seen = 0;
  call_on_stack(
      stack.top,
      [](void* out) {
        alignas(16) volatile char local = 1;
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(&local) % 16, 0u);
        *static_cast<std::uintptr_t*>(out) = reinterpret_cast<std::uintptr_t>(&local);
      },
      &seen);
  EXPECT_GE(seen, reinterpret_cast<std::uintptr_t>(stack.bottom));
  EXPECT_LT(seen, reinterpret_cast<std::uintptr_t>(stack.top));
}

TEST_F(StackSwitch, AnExceptionPropagatesToTheCaller) {
  StackPool pool(base_, kPart, base::kMiB);
  const ManagedStack stack = pool.acquire().value();
  EXPECT_THROW(
      call_on_stack(
          stack.top, [](void*) { throw std::runtime_error("from the other stack"); }, nullptr),
      std::runtime_error);
}

TEST_F(StackSwitch, ABacktraceShowsBothStacks) {
  StackPool pool(base_, kPart, base::kMiB);
  const ManagedStack stack = pool.acquire().value();
  int depth_outside = 0;
  int depth_inside = 0;
  void* frames[64];
  depth_outside = backtrace(frames, 64);
  call_on_stack(
      stack.top,
      [](void* out) {
        void* inner[64];
        *static_cast<int*>(out) = backtrace(inner, 64);
      },
      &depth_inside);
  EXPECT_GT(depth_inside, depth_outside);
}

TEST_F(StackSwitch, LongjmpToTheOldStackLeavesTheNewOne) {
  StackPool pool(base_, kPart, base::kMiB);
  const ManagedStack stack = pool.acquire().value();
  std::jmp_buf back;
  if (const int value = setjmp(back); value == 0) {
    call_on_stack(
        stack.top, [](void* target) { std::longjmp(*static_cast<std::jmp_buf*>(target), 7); },
        &back);
    FAIL() << "longjmp came back";
  } else {
    EXPECT_EQ(value, 7);
  }
}

TEST_F(StackSwitch, StacksAreDistinctReusedAndBounded) {
  StackPool pool(base_, kPart, base::kMiB);
  std::vector<ManagedStack> stacks;
  for (std::size_t i = 0; i < pool.capacity(); ++i) {
    stacks.push_back(pool.acquire().value());
    EXPECT_GE(stacks.back().size(), base::kMiB);
    if (i > 0) {
      EXPECT_GE(stacks[i].bottom, stacks[i - 1].top);
    }
  }
  EXPECT_FALSE(pool.acquire().ok());
  const ManagedStack last = stacks.back();
  pool.release(last);
  EXPECT_EQ(pool.acquire().value().top, last.top);
}

TEST_F(StackSwitch, OverflowHitsTheGuardPage) {
  StackPool pool(base_, kPart, base::kMiB);
  const ManagedStack stack = pool.acquire().value();
  EXPECT_EXIT(*(stack.bottom - 1) = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
}

TEST(ManagedStackSize, FollowsTheOpenMpVariables) {
  setenv("OMP_STACKSIZE", "3 M", 1);
  EXPECT_EQ(managed_stack_size(true), 3 * base::kMiB);
  setenv("OMP_STACKSIZE", "2048", 1);
  EXPECT_EQ(managed_stack_size(true), 2 * base::kMiB);
  setenv("OMP_STACKSIZE", "1T", 1);
  setenv("KMP_STACKSIZE", "4m", 1);
  EXPECT_EQ(managed_stack_size(true), 4 * base::kMiB);
  unsetenv("OMP_STACKSIZE");
  unsetenv("KMP_STACKSIZE");
  EXPECT_GE(managed_stack_size(false), 256 * base::kKiB);
}

}  // namespace
}  // namespace amasia::omp
