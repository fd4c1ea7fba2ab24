// SPDX-License-Identifier: Apache-2.0
#include "loops/cpu_limit.hpp"

#include <gtest/gtest.h>

namespace amasia::loops {
namespace {

constexpr CpuLimit kThird{.cores = 1.0 / 3, .period = 3000};

TEST(CpuLimit, WithoutOneNothingTakesLonger) {
  EXPECT_EQ(sustained_time({}, 5000, 0), 0);
  EXPECT_FALSE(CpuLimit{}.holds());
}

TEST(CpuLimit, AThirdOfACoreTakesThriceAsLong) {
  EXPECT_NEAR(static_cast<double>(sustained_time(kThird, 500, 0)), 1500, 1);
  EXPECT_NEAR(static_cast<double>(sustained_time(kThird, 50'000, 0)), 150'000, 1);
}

TEST(CpuLimit, TwoCoresOfFourThreadsAreWhatTheyUseTogether) {
  EXPECT_EQ(sustained_time({.cores = 2, .period = 1000}, 8000, 0), 4000);
}

TEST(CpuLimit, RestIsSparedUpToAPeriod) {
  EXPECT_NEAR(static_cast<double>(sustained_time(kThird, 5000, 1000)), 14'000, 1);
  EXPECT_NEAR(static_cast<double>(sustained_time(kThird, 5000, 3000)), 12'000, 1);
  EXPECT_NEAR(static_cast<double>(sustained_time(kThird, 5000, 90'000)), 12'000, 1);
  EXPECT_EQ(sustained_time(kThird, 500, 90'000), 0);
  EXPECT_NEAR(static_cast<double>(sustained_time(kThird, 500, -1)), 1500, 1);
}

}  // namespace
}  // namespace amasia::loops
