// SPDX-License-Identifier: Apache-2.0
// Whether ThreadSanitizer watches where it is built in: a race is planted, in a process of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "amasia/tasks.hpp"
#include "tasks/test_size.hpp"

namespace amasia::tasks {
namespace {

// Both add to a plain number, one after the other, and nothing that orders them says so.
[[noreturn]] void race_of_tasks() {
  runtime workers({.workers = 2, .detect_deadlock = false});
  volatile long number = 0;
  std::atomic<bool> first_is_done{false};
  workers.run([&] {
    async([&] {
      number = number + 1;
      first_is_done.store(true, std::memory_order_relaxed);
    });
    std::thread([&] {
      while (!first_is_done.load(std::memory_order_relaxed)) std::this_thread::yield();
      number = number + 1;
    }).join();
  });
  std::exit(0);
}

TEST(Sanitizer, SeesARaceOfATaskOnItsFiber) {
  if (!kIsSlow) GTEST_SKIP() << "built without ThreadSanitizer";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(race_of_tasks(), testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace amasia::tasks
