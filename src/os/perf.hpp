// SPDX-License-Identifier: Apache-2.0
// Counters of the processor and of the kernel for one thread (perf_event_open), in user mode only:
// what the kernel does for a fault is not counted.
//
// The processor has a few counters only. Where there are more events than that, the kernel lets
// them take turns, and tells for how long they were wanted (enabled) and counted (running). Events
// of a group take their turns together, so that their ratio holds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

enum class PerfEvent : std::uint8_t {
  kCycles,
  kInstructions,
  kCacheMisses,  // of the last level, as the processor's maker defines them
  kTaskClock,    // ns on a core; by the kernel, so that it is there in every virtual machine; its
                 // events lag behind until a tick, but for the first of a group
  kPageFaults,   // the kernel's, too
};
inline constexpr std::size_t kPerfEvents = 5;
const char* name_of(PerfEvent event);

inline constexpr std::size_t kMostPerfEvents = 4;  // of a group

// A group's counts at one moment, since it was opened.
struct PerfReading {
  std::uint64_t enabled_ns = 0, running_ns = 0;
  std::array<std::uint64_t, kMostPerfEvents> counts{};  // in the order of the events
};

// What was counted between two readings, stretched to the whole time where the group had to give
// way; nullopt: it never counted, or the readings are not in order. Pure.
std::optional<std::array<double, kMostPerfEvents>> counted_between(const PerfReading& before,
                                                                   const PerfReading& after);

class PerfGroup {
 public:
  // Counts `events` (1 to kMostPerfEvents) of the calling thread from now on; any thread may read.
  // The error's sentence says what to change (perf_refusal). `least_descriptor`: its descriptors
  // have this number or a higher one, so that they are not in a program's way.
  static Result<PerfGroup> open(std::span<const PerfEvent> events, int least_descriptor = 0);

  // About half a microsecond, a system call. False: the kernel gave none.
  bool read(PerfReading& reading) const noexcept;
  int thread_id() const { return thread_id_; }  // whose events they are

 private:
  PerfGroup() = default;
  std::array<Descriptor, kMostPerfEvents> descriptors_;  // the first one leads
  std::size_t count_ = 0;
  int thread_id_ = 0;
};

// Why an event cannot be counted and what to do about it, as one sentence. `error`: errno of the
// call; `paranoid`: the text of /proc/sys/kernel/perf_event_paranoid, empty if there is none. Pure.
std::string perf_refusal(PerfEvent event, int error, const std::string& paranoid);

}  // namespace amasia::os
