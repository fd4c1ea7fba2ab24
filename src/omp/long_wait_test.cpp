// SPDX-License-Identifier: Apache-2.0
#include "omp/long_wait.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace amasia::omp {
namespace {

class Shown final : public Services {
 public:
  Result<ManagedStack> acquire_stack() override { return Error{"none", 0}; }
  [[noreturn]] void abort_job(std::string_view) override { std::abort(); }
  void show_wait(std::string_view what) override {
    text = what;
    ++times;
  }
  std::string text = "nothing yet";
  int times = 0;
};

constexpr Nanos kStart = 1000 * base::kSecond;
constexpr Awaited kBarrier{.what = "the arrival at a barrier", .node = 2};

TEST(LongWait, says_nothing_of_a_short_wait) {
  Shown shown;
  {
    LongWait wait(shown, NodeId{1}, base::kSecond, kBarrier, kStart);
    EXPECT_EQ(wait.tell(kStart), LongWait::kMoment);
    EXPECT_EQ(wait.tell(kStart + LongWait::kMoment - 1), 1);
  }
  EXPECT_EQ(shown.times, 0);
}

TEST(LongWait, shows_what_it_waits_for_until_it_ends) {
  Shown shown;
  {
    LongWait wait(shown, NodeId{1}, 0, kBarrier, kStart);
    EXPECT_EQ(wait.tell(kStart + LongWait::kMoment), LongWait::kMoment);
    EXPECT_EQ(shown.text, "the arrival at a barrier of node 2");
    shown.text = "what another thread waits for";
    wait.tell(kStart + 2 * LongWait::kMoment);
    EXPECT_EQ(shown.text, "the arrival at a barrier of node 2");
  }
  EXPECT_EQ(shown.text, "");
}

TEST(LongWait, complains_each_time_that_the_watchdogs_time_has_passed) {
  Shown shown;
  LongWait wait(shown, NodeId{1}, base::kSecond, {.what = "the lock", .address = 0x7e90}, kStart);
  testing::internal::CaptureStderr();
  wait.tell(kStart + base::kSecond - 1);
  wait.tell(kStart + base::kSecond);
  wait.tell(kStart + 2 * base::kSecond - 1);
  wait.tell(kStart + 2 * base::kSecond);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("node 1 has waited 1 s for the lock at 0x7e90\n"), std::string::npos) << log;
  EXPECT_NE(log.find("node 1 has waited 2 s for the lock at 0x7e90\n"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
}

TEST(LongWait, an_idle_wait_sleeps_for_ever) {
  Shown shown;
  LongWait wait(shown, NodeId{1}, base::kSecond, {}, kStart);
  EXPECT_EQ(wait.tell(kStart + 1000 * base::kSecond), -1);
  EXPECT_EQ(shown.times, 0);
}

}  // namespace
}  // namespace amasia::omp
