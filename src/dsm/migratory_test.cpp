// SPDX-License-Identifier: Apache-2.0
#include "dsm/migratory.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm {
namespace {

constexpr PageIndex kPage{7};

void take_turns(MigratoryPages& pages, std::uint32_t turns) {
  for (std::uint32_t i = 0; i < turns; ++i) {
    EXPECT_FALSE(pages.on_read_fault(kPage));
    pages.on_upgrade(kPage);
  }
}

TEST(MigratoryPages, APageThatIsReadAndThenWrittenInTurnsIsAskedForAsAWriter) {
  MigratoryPages pages;
  take_turns(pages, MigratoryPages::kTurnsUntilKnown);
  EXPECT_TRUE(pages.on_read_fault(kPage));
  EXPECT_TRUE(pages.on_read_fault(kPage));
  EXPECT_FALSE(pages.on_read_fault(PageIndex{8}));
}

TEST(MigratoryPages, APageThatIsOnlyReadIsNot) {
  MigratoryPages pages;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pages.on_read_fault(kPage));
}

TEST(MigratoryPages, AReadWithoutAWriteInBetweenStartsTheCountAnew) {
  MigratoryPages pages;
  take_turns(pages, 1);
  EXPECT_FALSE(pages.on_read_fault(kPage));
  take_turns(pages, 2);
  EXPECT_TRUE(pages.on_read_fault(kPage));
}

TEST(MigratoryPages, APageThatIsWrittenNoMoreIsReadAgainAfterAWhile) {
  MigratoryPages pages;
  take_turns(pages, MigratoryPages::kTurnsUntilKnown);
  std::uint32_t asked = 0;
  while (pages.on_read_fault(kPage)) ASSERT_LT(++asked, MigratoryPages::kRelearn);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pages.on_read_fault(kPage));
}

TEST(MigratoryPages, APageThatGoesOnMigratingIsKnownAgainAtOnce) {
  MigratoryPages pages;
  take_turns(pages, MigratoryPages::kTurnsUntilKnown);
  while (pages.on_read_fault(kPage)) {
  }
  pages.on_upgrade(kPage);
  EXPECT_TRUE(pages.on_read_fault(kPage));
}

}  // namespace
}  // namespace amasia::dsm
