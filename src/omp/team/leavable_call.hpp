// SPDX-License-Identifier: Apache-2.0
// A call of ours out of which a thread may go home (halt.hpp): it sends, or waits for what other
// threads do.
#pragma once

#include "omp/native.hpp"
#include "omp/team/team.hpp"

namespace amasia::omp {

// Calls `function()` on the native stack; it returns soon once Halt::is_asked() of `frame`. By the
// frame's thread, with no lock held. True: go on. False: the thread goes on at home from here, as
// another one: the caller must look up all that is its node's again, `frame` too.
template <typename Function>
[[gnu::noinline]] bool leavable_call(ThreadFrame& frame, Function function) {
  Halt& halt = frame.team->halt();
  halt.begin_call(frame);
  on_native_stack(function);
  return !halt.end_call(frame) || frame.team->stop_in_call(frame);
}

}  // namespace amasia::omp
