// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/device_clock.hpp"

#include <gtest/gtest.h>

#include <random>

namespace amasia::devices {
namespace {

TEST(DeviceClock, knows_nothing_before_it_was_told) {
  const DeviceClock clock;
  EXPECT_FALSE(clock.known());
  EXPECT_EQ(clock.to_host(5), 0);
}

TEST(DeviceClock, a_time_that_is_not_known_stays_so) {
  DeviceClock clock;
  clock.note(100, 1100);
  EXPECT_EQ(clock.to_host(0), 0);
  EXPECT_EQ(clock.to_host(50), 1050);
}

// Ends are noticed late, by between `least` and much more; clocks drift by 100 in a million.
TEST(DeviceClock, is_off_by_the_least_delay_and_the_drift_of_two_windows) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    DeviceClock clock;
    constexpr Nanos kOffset = 7'000'000'000'000, kLeast = 2000;
    const double drift = (seed % 2 == 0 ? 1.0 : -1.0) * 1e-4;
    Nanos host = kOffset;
    for (int i = 0; i < 5000; ++i) {
      host += random() % 2'000'000;
      const Nanos device =
          1 + static_cast<Nanos>(static_cast<double>(host - kOffset) * (1 + drift));
      clock.note(device, host + kLeast + random() % 1'000'000);
      if (i < 1000) continue;
      const Nanos off = clock.to_host(device) - host;
      const Nanos allowed = 2 * DeviceClock::kWindow / 10000 + 40'000;
      EXPECT_LE(std::abs(off), kLeast + allowed) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace amasia::devices
