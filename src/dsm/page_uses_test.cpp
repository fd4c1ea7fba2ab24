// SPDX-License-Identifier: Apache-2.0
#include "dsm/page_uses.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm {
namespace {

class PausesOfAPage : public ::testing::Test {
 protected:
  void watch(std::size_t at, ThreadSlot& slot, std::int32_t thread) {
    slot.thread_id = thread;
    use.thread_ids[at] = thread;
    use.slots[at] = &slot;
    use.pauses_at_install[at] = slot.pauses;
  }
  ThreadSlot first, second;
  PageUse use;
};

TEST_F(PausesOfAPage, NobodyHasPausedWhereNobodyFaulted) {
  EXPECT_FALSE(all_paused_since_install(use));
}

TEST_F(PausesOfAPage, CountSinceTheInstallationAndForEachThread) {
  first.pauses = 7;
  watch(0, first, 100);
  watch(1, second, 101);
  EXPECT_FALSE(all_paused_since_install(use));
  ++first.pauses;
  EXPECT_FALSE(all_paused_since_install(use));
  ++second.pauses;
  EXPECT_TRUE(all_paused_since_install(use));
}

TEST_F(PausesOfAPage, SayNothingOfASlotThatChangedHands) {
  watch(0, first, 100);
  ++first.pauses;
  first.thread_id = 200;
  EXPECT_FALSE(all_paused_since_install(use));
}

TEST_F(PausesOfAPage, SayNothingWhereSomeThreadIsNotWatched) {
  watch(0, first, 100);
  ++first.pauses;
  use.unwatched = true;
  EXPECT_FALSE(all_paused_since_install(use));
}

TEST_F(PausesOfAPage, AThreadUsesThePageUntilItPausesOrItsSlotChangesHands) {
  first.pauses = 7;
  watch(0, first, 100);
  second.thread_id = 101;
  EXPECT_TRUE(is_in_use_by(use, first));
  EXPECT_FALSE(is_in_use_by(use, second));
  ++first.pauses;
  EXPECT_FALSE(is_in_use_by(use, first));
  first.pauses = 7;
  first.thread_id = 200;
  EXPECT_FALSE(is_in_use_by(use, first));
}

TEST(PageUses, ALostPageIsKnownButNotUsed) {
  auto made = PageUses::make();
  ASSERT_TRUE(made.ok());
  PageUses uses = std::move(made).value();
  const PageIndex page{5}, other{6};
  EXPECT_EQ(uses.find_last(page), nullptr);
  PageUse* const use = uses.renew(page, 10);
  ASSERT_NE(use, nullptr);
  use->held = true;
  EXPECT_EQ(uses.find(page), use);
  uses.note_loss(other);  // nothing is known of it
  uses.note_loss(page);
  EXPECT_EQ(uses.find(page), nullptr);
  ASSERT_EQ(uses.find_last(page), use);
  EXPECT_FALSE(use->held);
  EXPECT_EQ(use->installed_at, 10);
  EXPECT_EQ(uses.renew(page, 20), use);
  EXPECT_EQ(uses.find(page), use);
  EXPECT_EQ(uses.find_last(other), nullptr);
}

}  // namespace
}  // namespace amasia::dsm
