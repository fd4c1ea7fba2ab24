// SPDX-License-Identifier: Apache-2.0
#include "loops/midway.hpp"

#include <gtest/gtest.h>

namespace amasia::loops {
namespace {

constexpr double kMs = base::kMillisecond;

// Looks at a loop every 20 ms until it goes home; when, or 0 if it does not within a second. Of
// each of them so much would have taken the origin alone, and so much was waited for what was lost.
double goes_after(double alone, double to_and_fro, double allowance = 120 * kMs) {
  Midway midway(allowance);
  for (int look = 1; look <= 50; ++look) {
    const double elapsed = look * 20 * kMs;
    if (midway.hear({elapsed, alone * elapsed, to_and_fro * elapsed})) return elapsed;
  }
  return 0;
}

TEST(Midway, ALoopWhosePagesGoToAndFroComesHome) {
  EXPECT_EQ(goes_after(0.4, 0.7), 60 * kMs);   // of which 36 are lost
  EXPECT_EQ(goes_after(0.4, 0.3), 120 * kMs);  // as far as it is for that
  EXPECT_EQ(goes_after(0.4, 0.7, 1200 * kMs), 520 * kMs);
  EXPECT_EQ(goes_after(0, 1, 0), 20 * kMs);
}

TEST(Midway, ALoopThatGainsStaysHoweverMuchItWaits) {
  EXPECT_EQ(goes_after(1.0, 0.5), 0);
  EXPECT_EQ(goes_after(1.3, 0.9), 0);
  EXPECT_EQ(goes_after(0.85, 0.9), 0) << "what is left may not be worth the way";
}

TEST(Midway, DataThatComeToStayAreNotCounted) {
  EXPECT_EQ(goes_after(0.1, 0), 0);
  EXPECT_EQ(goes_after(0.1, 0.15), 0);
}

TEST(Midway, WhatWasLostBeforeDoesNotSendHomeWhatGainsNow) {
  Midway midway(120 * kMs);
  EXPECT_FALSE(midway.hear({30 * kMs, 2 * kMs, 30 * kMs}));   // 28 ms
  EXPECT_FALSE(midway.hear({60 * kMs, 60 * kMs, 32 * kMs}));  // gains
  EXPECT_FALSE(midway.hear({70 * kMs, 62 * kMs, 40 * kMs}));  // it has made good for most of it
  EXPECT_NEAR(midway.lost(), 8 * kMs, 1);
}

TEST(Midway, ALookAtNothingSaysNothing) {
  Midway midway(0);
  EXPECT_FALSE(midway.hear({0, 0, 0}));
  EXPECT_EQ(midway.lost(), 0);
}

}  // namespace
}  // namespace amasia::loops
