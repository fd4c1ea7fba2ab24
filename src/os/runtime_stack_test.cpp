// SPDX-License-Identifier: Apache-2.0
#include "os/runtime_stack.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <thread>

namespace amasia::os {
namespace {

[[gnu::noinline]] std::uintptr_t stack_place() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

bool is_far(std::uintptr_t a, std::uintptr_t b) { return (a > b ? a - b : b - a) > 64 * 1024; }

TEST(RuntimeStack, ASectionRunsElsewhereWithSignalsBlocked) {
  const std::uintptr_t outside = stack_place();
  std::uintptr_t inside = 0;
  std::uintptr_t nested = 0;
  int blocked = 0;
  in_runtime_section([&] {
    inside = stack_place();
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    blocked = sigismember(&set, SIGALRM);
    in_runtime_section([&] { nested = stack_place(); });
  });
  EXPECT_TRUE(is_far(outside, inside));
  EXPECT_FALSE(is_far(inside, nested));
  EXPECT_EQ(blocked, 1);
  sigset_t set;
  pthread_sigmask(SIG_BLOCK, nullptr, &set);
  EXPECT_EQ(sigismember(&set, SIGALRM), 0);
}

TEST(RuntimeStack, ARuntimeThreadStaysOnItsOwn) {
  std::thread([] {
    declare_runtime_thread();
    const std::uintptr_t outside = stack_place();
    std::uintptr_t inside = 0;
    in_runtime_section([&] { inside = stack_place(); });
    EXPECT_FALSE(is_far(outside, inside));
  }).join();
}

TEST(RuntimeStack, EachThreadHasItsOwn) {
  std::uintptr_t first = 0;
  in_runtime_section([&] {
    first = stack_place();
    std::thread([&] {
      std::uintptr_t second = 0;
      in_runtime_section([&] { second = stack_place(); });
      EXPECT_TRUE(is_far(first, second));
    }).join();
  });
}

}  // namespace
}  // namespace amasia::os
