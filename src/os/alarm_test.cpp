// SPDX-License-Identifier: Apache-2.0
#include "os/alarm.hpp"

#include <gtest/gtest.h>

#include "os/clock.hpp"
#include "os/wakeup.hpp"

namespace amasia::os {
namespace {

bool is_readable(int descriptor, Nanos timeout = 0) {
  return wait_readable(&descriptor, 1, timeout) != 0;
}

TEST(Alarm, GoesOffAtItsTimeAndIsForgottenWhenSetAgain) {
  auto made = Alarm::make();
  ASSERT_TRUE(made.ok());
  Alarm& alarm = made.value();
  EXPECT_FALSE(is_readable(alarm.descriptor()));
  const Nanos time = monotonic_now() + 2 * base::kMillisecond;
  alarm.set(time);
  EXPECT_TRUE(is_readable(alarm.descriptor(), -1));
  EXPECT_GE(monotonic_now(), time);
  alarm.set(monotonic_now() + 3600 * base::kSecond);
  EXPECT_FALSE(is_readable(alarm.descriptor()));
  alarm.set(0);  // a time that has passed
  EXPECT_TRUE(is_readable(alarm.descriptor(), -1));
  alarm.stop();
  EXPECT_FALSE(is_readable(alarm.descriptor()));
}

TEST(JoinedDescriptors, AreReadableWhileOneOfThemIs) {
  auto alarm = Alarm::make();
  auto wakeup = Wakeup::make();
  ASSERT_TRUE(alarm.ok() && wakeup.ok());
  auto joined = join_descriptors(alarm.value().descriptor(), wakeup.value().descriptor());
  ASSERT_TRUE(joined.ok());
  EXPECT_FALSE(is_readable(joined.value().get()));
  EXPECT_FALSE(is_either_readable(joined.value()));
  wakeup.value().raise();
  EXPECT_TRUE(is_either_readable(joined.value()));
  EXPECT_TRUE(is_readable(joined.value().get()));
  EXPECT_TRUE(is_readable(joined.value().get())) << "level-triggered";
  wakeup.value().clear();
  EXPECT_FALSE(is_readable(joined.value().get()));
  EXPECT_FALSE(is_either_readable(joined.value()));
  alarm.value().set(1);
  EXPECT_TRUE(is_readable(joined.value().get(), -1));
}

}  // namespace
}  // namespace amasia::os
