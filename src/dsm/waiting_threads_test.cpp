// SPDX-License-Identifier: Apache-2.0
#include "dsm/waiting_threads.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace amasia::dsm {
namespace {

class WaitingThreadsTest : public testing::Test {
 protected:
  // A fault of the thread at `since` that ends at `now`; it has run for `cpu` in all.
  Nanos idle_before_page(std::int32_t thread_id, Nanos since, Nanos now, Nanos cpu) {
    const PageIndex page{next_page_++};
    EXPECT_TRUE(waiting_->add({.page = page,
                               .since = since,
                               .thread_id = thread_id,
                               .slot = waiting_->slot_of(thread_id)}));
    std::array<WaitingThread, 2> done;
    EXPECT_EQ(waiting_->finish({page, 1}, now, done), 1U);
    return waiting_->note_served(done[0], now, cpu);
  }

  std::unique_ptr<WaitingThreads> waiting_ = std::make_unique<WaitingThreads>();
  std::uint64_t next_page_ = 0;
};

TEST_F(WaitingThreadsTest, AreIdleBetweenTwoPagesWhileTheyDoNotRun) {
  EXPECT_EQ(idle_before_page(7, 100, 200, 50), 0) << "nothing is known of the time before";
  EXPECT_EQ(idle_before_page(7, 1000, 1100, 150), 700);
  EXPECT_EQ(idle_before_page(7, 1200, 1300, 260), 0) << "clocks that differ by little";
}

TEST_F(WaitingThreadsTest, AreNotIdleWhileTheyWaitForOtherNodes) {
  EXPECT_EQ(idle_before_page(7, 100, 200, 50), 0);
  ++waiting_->slot(waiting_->slot_of(7)).pauses;
  EXPECT_EQ(idle_before_page(7, 1000, 1100, 150), 0);
  EXPECT_EQ(idle_before_page(7, 1300, 1400, 200), 150);
}

TEST_F(WaitingThreadsTest, AreNotHeldAgainstThoseThatHadTheirSlotBefore) {
  EXPECT_EQ(idle_before_page(7, 100, 200, 50), 0);
  waiting_->free_slot(&waiting_->slot(waiting_->slot_of(7)));
  EXPECT_EQ(idle_before_page(8, 1000, 1100, 10), 0);
  EXPECT_EQ(idle_before_page(8, 1300, 1400, 50), 160);
}

}  // namespace
}  // namespace amasia::dsm
