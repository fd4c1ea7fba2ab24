// SPDX-License-Identifier: Apache-2.0
#include "dsm/deadlines.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

namespace amasia::dsm {
namespace {

TEST(Deadlines, EmptyHasNoNext) {
  auto made = Deadlines::make();
  ASSERT_TRUE(made.ok());
  PageIndex page;
  EXPECT_EQ(made.value().next(), std::numeric_limits<Nanos>::max());
  EXPECT_FALSE(made.value().pop(1000, &page));
}

// Random operations against a map; few pages, so that hash chains are moved about.
TEST(Deadlines, BehavesAsAMapOrderedByTime) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    auto made = Deadlines::make();
    ASSERT_TRUE(made.ok());
    Deadlines& deadlines = made.value();
    std::map<std::uint64_t, Nanos> oracle;
    std::mt19937 random(seed);
    for (int step = 0; step < 3000; ++step) {
      const PageIndex page{random() % 200 * 131072};
      switch (random() % 4) {
        case 0:
        case 1: {
          const Nanos when = static_cast<Nanos>(random() % 1000);
          ASSERT_TRUE(deadlines.set(page, when));
          oracle[page.value] = when;
          break;
        }
        case 2:
          deadlines.remove(page);
          oracle.erase(page.value);
          break;
        default: {
          PageIndex due;
          const Nanos now = static_cast<Nanos>(random() % 1000);
          const Nanos next = deadlines.next();
          if (!deadlines.pop(now, &due)) {
            ASSERT_GT(next, now);
            break;
          }
          ASSERT_EQ(oracle.at(due.value), next);
          for (const auto& entry : oracle) ASSERT_GE(entry.second, next);
          oracle.erase(due.value);
        }
      }
      ASSERT_EQ(deadlines.size(), oracle.size());
      ASSERT_EQ(deadlines.contains(page), oracle.contains(page.value));
    }
  }
}

TEST(Deadlines, RefusesWhatItHasNoRoomFor) {
  auto made = Deadlines::make();
  ASSERT_TRUE(made.ok());
  for (std::uint64_t i = 0; i < Deadlines::kCapacity; ++i) {
    ASSERT_TRUE(made.value().set(PageIndex{i}, static_cast<Nanos>(i)));
  }
  EXPECT_FALSE(made.value().set(PageIndex{Deadlines::kCapacity}, 0));
  EXPECT_TRUE(made.value().set(PageIndex{7}, 0));
}

}  // namespace
}  // namespace amasia::dsm
