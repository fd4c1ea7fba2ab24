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

}  // namespace
}  // namespace amasia::dsm
