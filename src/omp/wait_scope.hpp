// SPDX-License-Identifier: Apache-2.0
// Books the time in which a thread of a team waits for other threads: what is left of its time in
// the region is compute and stall.
#pragma once

#include "omp/frame.hpp"
#include "omp/team/leader_counters.hpp"
#include "os/os.hpp"

namespace amasia::omp {

// For the frame's own thread. Scopes may be nested, the outermost one counts: a task that runs in a
// barrier may wait, too.
class WaitScope {
 public:
  explicit WaitScope(ThreadFrame& frame) : frame_(frame) {
    if (frame_.waits++ != 0) return;
    frame_.waited -= os::monotonic_now();
    if (frame_.counters != nullptr) frame_.counters->stop();
    if (frame_.measures_cpu) frame_.cpu += os::own_cpu_time();
  }
  ~WaitScope() {
    if (--frame_.waits != 0) return;
    if (frame_.counters != nullptr) frame_.counters->go_on();
    frame_.waited += os::monotonic_now();
    if (frame_.measures_cpu) frame_.cpu -= os::own_cpu_time();
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  ThreadFrame& frame_;
};

}  // namespace amasia::omp
