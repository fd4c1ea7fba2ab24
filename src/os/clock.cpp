// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <time.h>

namespace amasia::os {
namespace {

Nanos to_nanos(const timespec& time) {
  return static_cast<Nanos>(time.tv_sec) * base::kSecond + time.tv_nsec;
}

}  // namespace

Nanos monotonic_now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return to_nanos(time);
}

Nanos realtime_now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return to_nanos(time);
}

Nanos TickClock::time_of(Ticks stamp) const noexcept {
  const Nanos now = monotonic_now();
  const Ticks ticks = ticks_now();
  if (stamp >= ticks || ticks <= first_ || now <= began_) return now;
  const double each = static_cast<double>(now - began_) / static_cast<double>(ticks - first_);
  return now - static_cast<Nanos>(static_cast<double>(ticks - stamp) * each);
}

Nanos own_cpu_time() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return to_nanos(time);
}

Nanos thread_cpu_time(int thread_id) noexcept {
  if (thread_id <= 0) return -1;  // what follows would name other clocks
  // The kernel's encoding of "scheduler clock of one thread": ~id in the upper bits, 4 = per
  // thread, 2 = scheduler clock. pthread_getcpuclockid needs a pthread_t, which a fault does not
  // carry.
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread_id) << 3) | 4U | 2U);
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return -1;
  return to_nanos(time);
}

}  // namespace amasia::os
