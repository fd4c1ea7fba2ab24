// SPDX-License-Identifier: Apache-2.0
#include "dsm/migratory.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm {
namespace {

constexpr PageIndex kPage{7};

// The page's first upgrade makes it a watched one.
MigratoryPages watched() {
  MigratoryPages pages;
  pages.on_upgrade(kPage, 0);
  return pages;
}

void take_turns(MigratoryPages& pages, std::uint32_t turns) {
  for (std::uint32_t i = 0; i < turns; ++i) {
    EXPECT_FALSE(pages.on_read_fault(kPage, 0));
    pages.on_upgrade(kPage, MigratoryPages::kSoon);
  }
}

TEST(MigratoryPages, APageThatIsReadAndThenWrittenInTurnsIsAskedForAsAWriter) {
  MigratoryPages pages = watched();
  take_turns(pages, MigratoryPages::kTurnsUntilKnown);
  EXPECT_TRUE(pages.on_read_fault(kPage, 0));
  EXPECT_TRUE(pages.on_read_fault(kPage, 0));
  EXPECT_FALSE(pages.on_read_fault(PageIndex{8}, 0));
}

TEST(MigratoryPages, APageThatIsWrittenMuchLaterStaysReadable) {
  MigratoryPages pages = watched();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(pages.on_read_fault(kPage, 0));
    pages.on_upgrade(kPage, MigratoryPages::kSoon + 1);
  }
}

TEST(MigratoryPages, APageThatIsOnlyReadIsNot) {
  MigratoryPages pages = watched();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pages.on_read_fault(kPage, 0));
}

TEST(MigratoryPages, AReadWithoutAWriteInBetweenStartsTheCountAnew) {
  MigratoryPages pages = watched();
  take_turns(pages, 1);
  EXPECT_FALSE(pages.on_read_fault(kPage, 0));
  take_turns(pages, 2);
  EXPECT_TRUE(pages.on_read_fault(kPage, 0));
}

TEST(MigratoryPages, APageThatIsWrittenNoMoreIsReadAgainAfterAWhile) {
  MigratoryPages pages = watched();
  take_turns(pages, MigratoryPages::kTurnsUntilKnown);
  std::uint32_t asked = 0;
  while (pages.on_read_fault(kPage, 0)) ASSERT_LT(++asked, MigratoryPages::kRelearn);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pages.on_read_fault(kPage, 0));
}

TEST(MigratoryPages, APageThatGoesOnMigratingIsKnownAgainAtOnce) {
  MigratoryPages pages = watched();
  take_turns(pages, MigratoryPages::kTurnsUntilKnown);
  while (pages.on_read_fault(kPage, 0)) {
  }
  pages.on_upgrade(kPage, MigratoryPages::kSoon);
  EXPECT_TRUE(pages.on_read_fault(kPage, 0));
}

}  // namespace
}  // namespace amasia::dsm
