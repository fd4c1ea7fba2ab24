// SPDX-License-Identifier: Apache-2.0
#include "fabric/link_timing.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace amasia::fabric {
namespace {

constexpr Nanos kUs = base::kMicrosecond;

TEST(LinkTiming, AddsLatencyToALoneMessage) {
  LinkTiming link({.latency = 50 * kUs, .bytes_per_ns = 0});
  EXPECT_EQ(link.due(1000 * kUs, 4096), 1050 * kUs);
  EXPECT_EQ(link.due(1000 * kUs, 4 * base::kMiB), 1050 * kUs) << "bandwidth without a limit";
}

TEST(LinkTiming, LetsMessagesWaitForThoseBefore) {
  LinkTiming link({.latency = 50 * kUs, .bytes_per_ns = 0.2});  // 200 MB/s
  EXPECT_EQ(link.due(0, 200), 51 * kUs);
  EXPECT_EQ(link.due(0, 200), 52 * kUs);
  EXPECT_EQ(link.due(10 * kUs, 2000), 70 * kUs) << "the wire was free again";
  EXPECT_EQ(link.due(5 * kUs, 200), 71 * kUs) << "a clock that was read too early";
}

// Against what a link is: never early, in order, never more bytes than the bandwidth lets through,
// and busy whenever something waits.
TEST(LinkTiming, IsALinkForAnyMessages) {
  std::mt19937_64 random(30);
  for (int round = 0; round < 200; ++round) {
    const base::LinkSpeed speed{.latency = static_cast<Nanos>(random() % 1000) * kUs,
                                .bytes_per_ns = static_cast<double>(1 + random() % 1000) / 1000};
    LinkTiming link(speed);
    Nanos now = 0, last = 0, first_sent = 0;
    Bytes bytes = 0, since_idle = 0;
    for (int message = 0; message < 100; ++message) {
      now += static_cast<Nanos>(random() % 20) * kUs;
      const Bytes size = random() % 3 == 0 ? random() % base::kMiB : random() % 100;
      const Nanos due = link.due(now, size);
      ASSERT_GE(due, now + speed.latency) << "round " << round;
      ASSERT_GE(due, last) << "round " << round;
      bytes += size;
      const auto through = static_cast<double>(due - speed.latency) * speed.bytes_per_ns;
      ASSERT_LE(static_cast<double>(bytes), through + 1) << "round " << round;
      if (last - speed.latency <= now) {  // the wire was idle
        first_sent = now;
        since_idle = 0;
      }
      since_idle += size;
      const double least = static_cast<double>(since_idle) / speed.bytes_per_ns;
      ASSERT_NEAR(static_cast<double>(due - speed.latency - first_sent), least, 101)
          << "round " << round;
      last = due;
    }
  }
}

}  // namespace
}  // namespace amasia::fabric
