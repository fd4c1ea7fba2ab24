// SPDX-License-Identifier: Apache-2.0
// What the GOMP loop entry points do in a global team, for both of libgomp's loop types.
#pragma once

#include <vector>

#include "omp/abi/gomp.hpp"

namespace amasia::omp::gomp {

// libgomp's schedule numbers in the calls that carry one (gomp_schedule_type).
inline loops::ScheduleRequest schedule_of(long number, std::uint64_t chunk) {
  enum : long { kRuntime = 0, kStatic = 1, kDynamic = 2, kGuided = 3, kAuto = 4 };
  const bool monotonic = (number & 0x80000000) != 0;
  switch (number & 0x7fffffff) {
    case kStatic: return {loops::ScheduleKind::kStatic, chunk};
    case kDynamic: return {loops::ScheduleKind::kDynamic, chunk, monotonic};
    case kGuided: return {loops::ScheduleKind::kGuided, chunk, monotonic};
    // kAuto says: runtime, with the nonmonotonic modifier
    default: return runtime_schedule(monotonic);
  }
}

// The end of a loop's last chunk is, as with libgomp, the end that the program gave, not the value
// after the last iteration, which may overflow.
template <typename T>
bool next_chunk(ThreadFrame& frame, T* begin, T* end) {
  loops::Iterations range;
  if (!next_iterations(frame, range)) return false;
  const loops::Space& space = frame.loop.space;
  *begin = loops::value_at<T>(space, range.begin);
  *end = range.end == space.count ? static_cast<T>(frame.loop.end)
                                  : loops::value_at<T>(space, range.end);
  return true;
}

// Loops that are handed out, of libgomp's two types of variable: the starts differ in `up`.
inline void begin(ThreadFrame& frame, long start, long end, long step,
                  loops::ScheduleRequest schedule, const void* site) {
  begin_loop(frame, loops::space_until(start, end, step), schedule,
             static_cast<std::uint64_t>(end), site);
}

inline void begin_ordered(ThreadFrame& frame, long start, long end, long step,
                          loops::ScheduleRequest schedule, const void* site) {
  begin_ordered_loop(frame, loops::space_until(start, end, step), schedule,
                     static_cast<std::uint64_t>(end), site);
}

using Ull = unsigned long long;
inline void begin(ThreadFrame& frame, bool up, Ull start, Ull end, Ull step,
                  loops::ScheduleRequest schedule, const void* site) {
  begin_loop(frame, loops::space_until(start, end, up, step), schedule, end, site);
}

inline void begin_ordered(ThreadFrame& frame, bool up, Ull start, Ull end, Ull step,
                          loops::ScheduleRequest schedule, const void* site) {
  begin_ordered_loop(frame, loops::space_until(start, end, up, step), schedule, end, site);
}

// The nest's lengths are those of whole loops: not negative.
template <typename T>
void begin_doacross(ThreadFrame& frame, unsigned dimensions, const T* counts,
                    loops::ScheduleRequest schedule, const void* site) {
  static_assert(sizeof(T) == sizeof(std::uint64_t));
  const std::vector<std::uint64_t> lengths(counts, counts + dimensions);
  begin_doacross_loop(frame, lengths, schedule, site);
}

// A chunk size; libgomp takes anything below 1 as not given.
inline std::uint64_t chunk_of(long chunk) {
  return chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0;
}
inline std::uint64_t chunk_of(Ull chunk) { return chunk; }

}  // namespace amasia::omp::gomp
