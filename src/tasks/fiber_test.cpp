// SPDX-License-Identifier: Apache-2.0
#include "tasks/fiber.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>

#ifdef __SANITIZE_ADDRESS__
extern "C" void* __asan_region_is_poisoned(void* low, std::size_t size);
#endif

namespace amasia::tasks {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

struct Pair {
  Fiber thread;
  std::unique_ptr<Fiber> other;
  int visits = 0;

  // A frame with marks around its array, that never returns.
  static void visit(void* argument) {
    auto& self = *static_cast<Pair*>(argument);
    std::array<volatile char, 40> line{};
    for (;;) {
      line[static_cast<std::size_t>(self.visits) % line.size()] = 'x';
      ++self.visits;
      self.other->switch_to(self.thread);
    }
  }
};

TEST(Fiber, GoesOnWhereItStopped) {
  const auto stack = std::make_unique<std::byte[]>(kStackBytes);
  Pair pair;
  pair.other = std::make_unique<Fiber>(stack.get(), kStackBytes, &Pair::visit, &pair);
  for (int n = 0; n < 3; ++n) pair.thread.switch_to(*pair.other);
  EXPECT_EQ(pair.visits, 3);
}

TEST(Fiber, LeavesNoMarksOfTheAddressSanitizerOnItsStack) {
#ifndef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "built without AddressSanitizer";
#else
  const auto stack = std::make_unique<std::byte[]>(kStackBytes);
  {
    Pair pair;
    pair.other = std::make_unique<Fiber>(stack.get(), kStackBytes, &Pair::visit, &pair);
    pair.thread.switch_to(*pair.other);
    EXPECT_NE(__asan_region_is_poisoned(stack.get(), kStackBytes), nullptr);
  }
  EXPECT_EQ(__asan_region_is_poisoned(stack.get(), kStackBytes), nullptr);
#endif
}

}  // namespace
}  // namespace amasia::tasks
