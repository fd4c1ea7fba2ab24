// SPDX-License-Identifier: Apache-2.0
// What the files of the GOMP ABI share. Signatures are those of libgomp 12 (libgomp_g.h), frozen.
#pragma once

#include <cstdint>
#include <span>

#include "omp/omp.hpp"
#include "omp/real.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

#define AMASIA_ENTRY extern "C" __attribute__((visibility("default")))

namespace amasia::omp::gomp {

using Outline = void (*)(void* data);

// Before a task is made, which has the settings of where it is, and with which ends what it changes
// of them: a thread outside of regions is given the job's number of threads here, not in it.
inline void adopt_thread() {
  if (Node* const node = current_node(); node != nullptr) node->adopt_thread(Abi::kGomp);
}

// What the origin tells the other nodes of a region whose outlined function begins in the middle of
// a construct: a combined parallel loop, or parallel sections. Travels as Team::extra().
struct Combined {
  enum class Construct : std::uint32_t { kLoop, kSections };
  Construct construct = Construct::kLoop;
  std::uint32_t sections = 0;
  loops::Space space;
  loops::ScheduleRequest schedule;
  std::uint64_t end = 0;  // the loop's end as the program gave it
  const void* site = nullptr;
};

// The schedule of run-sched-var, for schedule(runtime); of the calling thread. `monotonic`: the
// clause says so.
loops::ScheduleRequest runtime_schedule(bool monotonic);

// Whether a loop's entry point is that of a monotonic one; gcc calls it where the program says so,
// and versions before OpenMP 5.0 where it says nothing.
constexpr bool is_monotonic(std::string_view entry) {
  return entry.find("nonmonotonic") == std::string_view::npos;
}

// Puts the thread into a construct that its outlined function does not begin by itself.
void enter_combined(ThreadFrame& frame, const Combined& combined);
// `site`: see WorkSharing::begin().
void begin_loop(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule,
                std::uint64_t end, const void* site);
void begin_ordered_loop(ThreadFrame& frame, const loops::Space& space,
                        loops::ScheduleRequest schedule, std::uint64_t end, const void* site);
void begin_sections(ThreadFrame& frame, std::uint32_t count);

// A nest of loops whose iterations wait for named ones; the outer one is handed out.
void begin_doacross_loop(ThreadFrame& frame, std::span<const std::uint64_t> counts,
                         loops::ScheduleRequest schedule, const void* site);

// The process's GOMP runtime for Node::set_runtime.
LocalRuntime& local_runtime();

}  // namespace amasia::omp::gomp
