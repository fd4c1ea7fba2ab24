// SPDX-License-Identifier: Apache-2.0
// Clocks.
#pragma once

#include "base/base.hpp"

namespace amasia::os {

// CLOCK_MONOTONIC, without a system call.
Nanos monotonic_now() noexcept;
// CLOCK_REALTIME, since 1970; jumps when the time of day is set.
Nanos realtime_now() noexcept;

// CLOCK_REALTIME: the same on hosts whose clocks are kept in step, but it may jump.
Nanos realtime_now() noexcept;

// CPU time that the calling thread has used. A system call, some 250 ns.
Nanos own_cpu_time() noexcept;
// CPU time that a thread of this process has used, or -1 when there is no such thread.
Nanos thread_cpu_time(int thread_id) noexcept;

}  // namespace amasia::os
