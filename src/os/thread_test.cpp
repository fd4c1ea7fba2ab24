// SPDX-License-Identifier: Apache-2.0
#include "os/thread.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <optional>
#include <thread>

namespace amasia::os {
namespace {

int policy_of_a_new_thread() {
  int policy = -1;
  std::thread([&] { policy = ::sched_getscheduler(0); }).join();
  return policy;
}

TEST(BatchScope, IsForThreadsThatAreStartedWithinIt) {
  const int before = ::sched_getscheduler(0);
  if (before != SCHED_OTHER) GTEST_SKIP() << "the test does not run at ordinary priority";
  std::optional<BatchScope> batch(std::in_place);
  if (::sched_getscheduler(0) == SCHED_OTHER) GTEST_SKIP() << "the system refuses SCHED_BATCH";
  EXPECT_EQ(policy_of_a_new_thread(), SCHED_BATCH);
  {
    const BatchScope within;  // its end is not that of the other one
  }
  EXPECT_EQ(policy_of_a_new_thread(), SCHED_BATCH);
  batch.reset();
  EXPECT_EQ(policy_of_a_new_thread(), SCHED_OTHER);
  EXPECT_EQ(::sched_getscheduler(0), before);
}

}  // namespace
}  // namespace amasia::os
