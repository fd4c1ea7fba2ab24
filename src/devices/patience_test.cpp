// SPDX-License-Identifier: Apache-2.0
#include "devices/patience.hpp"

#include <gtest/gtest.h>

namespace amasia::devices {
namespace {

TEST(Patience, LastsAsLongAsCoresComeBackSoon) {
  Patience patience;
  EXPECT_TRUE(patience.lasts(1000, 1001));
  EXPECT_FALSE(patience.lasts(1001, 1001));
  patience.note(1000, 1000 + Patience::kLate - 1);
  EXPECT_TRUE(patience.lasts(2000, 3000));
}

TEST(Patience, RestsLongerEachTimeThatSomebodyElseHadTheCore) {
  Patience patience;
  Nanos now = 1000, rest = Patience::kLeastRest;
  for (int times = 0; times < 10; ++times) {
    patience.note(now, now + Patience::kLate);
    now += Patience::kLate;
    EXPECT_FALSE(patience.lasts(now, INT64_MAX));
    EXPECT_FALSE(patience.lasts(now + rest - 1, INT64_MAX));
    patience.note(now, now + 1);
    EXPECT_FALSE(patience.lasts(now + 1, INT64_MAX)) << "one look in time proves nothing";
    now += rest;
    EXPECT_TRUE(patience.lasts(now, INT64_MAX));
    rest = std::min(2 * rest, Patience::kMostRest);
  }
  EXPECT_EQ(rest, Patience::kMostRest);
  for (int i = 0; i < Patience::kForgets; ++i) patience.note(now, now + 1);
  patience.note(now, now + Patience::kLate);
  EXPECT_TRUE(patience.lasts(now + Patience::kLate + Patience::kLeastRest, INT64_MAX));
}

}  // namespace
}  // namespace amasia::devices
