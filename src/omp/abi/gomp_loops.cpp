// SPDX-License-Identifier: Apache-2.0
// GOMP entry points of loops whose variable is a long (gcc's for all signed types).
#include <vector>

#include "omp/abi/gomp_constructs.hpp"
#include "omp/abi/gomp_reductions.hpp"
#include "omp/work_sharing/doacross.hpp"

namespace amasia::omp::gomp {

void begin_loop(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule,
                std::uint64_t end, const void* site) {
  frame.team->node().work_sharing()->begin(frame, space, schedule, site);
  frame.loop.end = end;
}

void begin_ordered_loop(ThreadFrame& frame, const loops::Space& space,
                        loops::ScheduleRequest schedule, std::uint64_t end, const void* site) {
  frame.team->node().turns()->begin(frame, space, schedule, site);
  frame.loop.end = end;
}

void begin_doacross_loop(ThreadFrame& frame, std::span<const std::uint64_t> counts,
                         loops::ScheduleRequest schedule, const void* site) {
  std::vector<loops::Space> nest;
  for (const std::uint64_t count : counts) nest.push_back({0, 1, count});
  frame.team->node().doacross()->begin(frame, nest);
  begin_loop(frame, nest[0], loops::in_turn(schedule), counts[0], site);
}

void enter_combined(ThreadFrame& frame, const Combined& combined) {
  if (combined.construct == Combined::Construct::kSections) {
    begin_sections(frame, combined.sections);
  } else {
    begin_loop(frame, combined.space, combined.schedule, combined.end, combined.site);
  }
}

namespace {
using Variable = long;

void leave_loop(ThreadFrame& frame) {
  if (frame.doacross != nullptr) frame.team->node().doacross()->end(frame);
  frame.loop = ThreadLoop{};
}

constinit Real<void()> real_end_nowait{"GOMP_loop_end_nowait"};
}  // namespace

#define AMASIA_LOOP(NAME) GOMP_loop_##NAME
#define AMASIA_UP_TYPE
#define AMASIA_UP_PARAMETER
#define AMASIA_UP
#include "omp/abi/gomp_loop_entries.inc"

AMASIA_ENTRY void GOMP_loop_end() {
  static constinit Real<void()> real{"GOMP_loop_end"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  leave_loop(*frame);
  frame->team->barrier(*frame);
}

AMASIA_ENTRY bool GOMP_loop_end_cancel() {
  static constinit Real<bool()> real{"GOMP_loop_end_cancel"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  leave_loop(*frame);
  return frame->team->barrier_or_cancelled(*frame);
}

AMASIA_ENTRY void GOMP_loop_end_nowait() {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_end_nowait();
  leave_loop(*frame);
}

}  // namespace amasia::omp::gomp
