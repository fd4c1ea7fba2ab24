// SPDX-License-Identifier: Apache-2.0
// What wakes a daemon that sleeps until something urgent comes, of runs of brief tasks and of ends:
// the test plays the daemon.
#include <gtest/gtest.h>

#include "devices/client/test_held.hpp"

namespace amasia::devices {
namespace {

class Heard : public HeldTasks {};

TEST_F(Heard, TheNextRunIsWhileAnotherDeviceHasNothing) {
  begin(2, 1);
  fall_asleep();
  submit();
  EXPECT_FALSE(sleeps()) << "the first run";
  const std::uint64_t first = next_put();
  fall_asleep();
  submit();
  EXPECT_FALSE(sleeps()) << "a second device has nothing to do";
  const std::uint64_t second = next_put();
  fall_asleep();
  for (int i = 0; i < 100; ++i) submit();
  EXPECT_TRUE(sleeps()) << "there are two devices, and two runs to be given to them";
  grant(first, 0);
  grant(second, 1);
}

TEST_F(Heard, OneDeviceThatIsBusyWakesForNone) {
  begin(1, 1);
  fall_asleep();
  submit();
  EXPECT_FALSE(sleeps());
  const std::uint64_t first = next_put();
  fall_asleep();
  for (int i = 0; i < 100; ++i) submit();
  EXPECT_TRUE(sleeps()) << "the run that it knows of keeps the device busy";
  grant(first, 0);
  ASSERT_TRUE(comes([&] { return backend_->has(1); }));
  EXPECT_TRUE(sleeps()) << "it does so now";
  ASSERT_TRUE(comes([&] { return backend_->end(false); }));
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "the device has nothing to do any more";
}

// The grant of one task to a device that takes more: what was put meanwhile need not wait for the
// end of that task, which may take long.
TEST_F(Heard, ADeviceWithRoomIsGivenTheNextRunBeforeTheFirstHasEnded) {
  begin(1, 2);
  fall_asleep();
  submit();
  const std::uint64_t first = next_put();
  fall_asleep();
  submit();
  EXPECT_TRUE(sleeps()) << "the run that it knows of goes there";
  grant(first, 0);
  ASSERT_TRUE(comes([&] { return backend_->has(1); }));
  EXPECT_FALSE(sleeps()) << "there is room beside it";
}

// A run tells of its end when all its tasks have ended.
TEST_F(Heard, WhereTheLastTaskOfARunTakesLongTheNextOneIsHeardBeforeItsEnd) {
  begin(1, 2);
  for (int i = 0; i < 2 + 5; ++i) submit();
  for (int i = 0; i < 2; ++i) {
    grant(next_put(), 0);
    ASSERT_TRUE(ends_one());
  }
  grant(next_put(), 0);  // what had gathered
  ASSERT_TRUE(comes([&] { return backend_->has(5); }));
  submit();
  const std::uint64_t known = next_put();
  fall_asleep();
  submit();
  grant(known, 0);
  ASSERT_TRUE(comes([&] { return backend_->has(5 + 1); }));
  backend_->end(true);
  for (int i = 0; i < 3; ++i) backend_->end(false);
  EXPECT_TRUE(sleeps()) << "there is no room";
  backend_->end(false);
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "there is";
}

TEST_F(Heard, AnEndThatOthersWaitForWhenHalfOfWhatWasGrantedHasEnded) {
  begin(1, 4, 1);
  for (int i = 0; i < 4; ++i) submit();
  for (int i = 0; i < 4; ++i) grant(next_put(), 0);
  ASSERT_TRUE(comes([&] { return backend_->has(4); }));
  fall_asleep(Urgency::kOthers);
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(sleeps()) << "the device has three";
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "two of four";
  fall_asleep(Urgency::kOwn);
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(sleeps()) << "the client itself waits for nothing";
  fall_asleep(Urgency::kOthers);
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "none is left";
}

}  // namespace
}  // namespace amasia::devices
