// SPDX-License-Identifier: Apache-2.0
// Clocks.
#pragma once

#include <cstdint>

#include "base/base.hpp"

namespace amasia::os {

// CLOCK_MONOTONIC, without a system call.
Nanos monotonic_now() noexcept;
// CLOCK_REALTIME, since 1970: the same on hosts whose clocks are kept in step, but it may jump.
Nanos realtime_now() noexcept;

// The processor's time stamp, for a third of what monotonic_now() takes. Never 0.
using Ticks = std::uint64_t;
inline Ticks ticks_now() noexcept { return __builtin_ia32_rdtsc() | 1; }

// What stamps mean. Estimates: cores may differ by a little, and machines that change the rate of
// their stamps by a lot. For any thread.
class TickClock {
 public:
  // CLOCK_MONOTONIC when `stamp` was taken; not later than now.
  Nanos time_of(Ticks stamp) const noexcept;

 private:
  Nanos began_ = monotonic_now();
  Ticks first_ = ticks_now();
};

// CPU time that the calling thread has used. A system call, some 250 ns.
Nanos own_cpu_time() noexcept;
// CPU time that a thread of this process has used, or -1 when there is no such thread.
Nanos thread_cpu_time(int thread_id) noexcept;

}  // namespace amasia::os
