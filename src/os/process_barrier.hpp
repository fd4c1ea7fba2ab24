// SPDX-License-Identifier: Apache-2.0
// A memory barrier that the caller executes on behalf of all threads of the process, so that a
// path that runs often can do without one (membarrier(2), private expedited).
#pragma once

namespace amasia::os {

// Before the first process_barrier(); idempotent. False: the kernel refuses, use fences instead.
bool register_process_barrier() noexcept;

// When it returns, each thread of the process has executed a full barrier since the call: what it
// stored before is visible, and what it loads afterwards is at least as new as what the caller
// stored before the call. About a microsecond where other threads run. Any thread.
void process_barrier() noexcept;

}  // namespace amasia::os
