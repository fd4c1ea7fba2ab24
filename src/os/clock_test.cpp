// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <gtest/gtest.h>

#include "os/os.hpp"

namespace amasia::os {
namespace {

TEST(Clock, AThreadsCpuTimeIsItsOwn) {
  const Nanos before = thread_cpu_time(current_thread_id());
  const Nanos own = own_cpu_time();
  const Nanos after = thread_cpu_time(current_thread_id());
  EXPECT_LE(before, own);
  EXPECT_LE(own, after);
}

TEST(Clock, WhatIsNoThreadHasNoCpuTime) {
  for (const int none : {0, -1, -2, -100}) EXPECT_EQ(thread_cpu_time(none), -1) << none;
}

}  // namespace
}  // namespace amasia::os
