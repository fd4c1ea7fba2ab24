// SPDX-License-Identifier: Apache-2.0
// Books the time in which a thread of a team waits for other threads: what is left of its time in
// the region is compute and stall.
#pragma once

#include <algorithm>

#include "omp/frame.hpp"
#include "omp/team/leader_counters.hpp"
#include "os/os.hpp"

namespace amasia::omp {

// How long a frame's thread has not waited in its region, and the CPU time that it has used then,
// where it is measured; both begin at minus the begin (Team::run_thread).
struct ActiveTimes {
  Nanos active = 0, cpu = 0;
};
// So far, of the calling thread, which may be in a wait.
ActiveTimes active_times(const ThreadFrame& frame);

// For the frame's own thread. Scopes may be nested, the outermost one counts: a task that runs in a
// barrier may wait, too.
//
// The CPU time in a wait is not the program's. To read it takes two system calls, twice what a
// barrier takes; so after a brief wait the next one is taken for a brief one, which is spent
// spinning, and so on a core. Should it be long, the thread is taken to have spun at first.
class WaitScope {
 public:
  static constexpr Nanos kBrief = 20 * base::kMicrosecond;

  explicit WaitScope(ThreadFrame& frame) : frame_(frame) {
    if (frame_.waits++ != 0) return;
    frame_.wait_began = os::monotonic_now();
    if (frame_.counters != nullptr) frame_.counters->stop();
    if (frame_.measures_cpu && !frame_.waits_briefly) frame_.cpu += os::own_cpu_time();
  }
  ~WaitScope() {
    if (--frame_.waits != 0) return;
    if (frame_.counters != nullptr) frame_.counters->go_on();
    const Nanos waited = os::monotonic_now() - frame_.wait_began;
    frame_.waited += waited;
    if (frame_.measures_cpu) {
      frame_.cpu -= frame_.waits_briefly ? std::min(waited, kBrief) : os::own_cpu_time();
    }
    frame_.waits_briefly = waited < kBrief;
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  ThreadFrame& frame_;
};

inline ActiveTimes active_times(const ThreadFrame& frame) {
  const Nanos now = os::monotonic_now();
  const bool waits = frame.waits != 0;
  ActiveTimes times{.active = frame.active - frame.waited + (waits ? frame.wait_began : now),
                    .cpu = frame.cpu};
  if (!frame.measures_cpu) return times;
  // A wait that is measured has read it when it began.
  if (!waits || frame.waits_briefly) times.cpu += os::own_cpu_time();
  if (waits && frame.waits_briefly) {
    times.cpu -= std::min(now - frame.wait_began, WaitScope::kBrief);
  }
  return times;
}

}  // namespace amasia::omp
