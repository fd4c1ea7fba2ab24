// SPDX-License-Identifier: Apache-2.0
// GOMP entry points of loops whose variable is a long (gcc's for all signed types).
#include <vector>

#include "omp/abi/gomp_constructs.hpp"
#include "omp/abi/gomp_reductions.hpp"
#include "omp/work_sharing/doacross.hpp"

namespace amasia::omp::gomp {

thread_local std::uint64_t loop_end = 0;

void begin_loop(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule,
                std::uint64_t end, const void* site) {
  loop_end = end;
  frame.team->node().work_sharing()->begin(frame, space, schedule, site);
}

void begin_ordered_loop(ThreadFrame& frame, const loops::Space& space,
                        loops::ScheduleRequest schedule, std::uint64_t end, const void* site) {
  loop_end = end;
  frame.team->node().turns()->begin(frame, space, schedule, site);
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
using Next = Real<bool(long*, long*)>;

bool next_loop(Next& real, long* begin, long* end) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(begin, end);
  return next_chunk(*frame, begin, end);
}

void leave_loop(ThreadFrame& frame) {
  if (frame.doacross != nullptr) frame.team->node().doacross()->end(frame);
  frame.loop = ThreadLoop{};
}

constinit Real<void()> real_end_nowait{"GOMP_loop_end_nowait"};
}  // namespace

#define AMASIA_LOOP_START(NAME, KIND)                                                           \
  AMASIA_ENTRY bool GOMP_loop_##NAME##_start(long start, long end, long step, long chunk,       \
                                             long* first, long* last) {                         \
    static constinit Real<bool(long, long, long, long, long*, long*)> real{                     \
        "GOMP_loop_" #NAME "_start"};                                                           \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(start, end, step, chunk, first, last);                    \
    begin_long(*frame, start, end, step,                                                        \
               {loops::ScheduleKind::KIND, chunk_of(chunk), is_monotonic(#NAME)},               \
               __builtin_return_address(0));                                                    \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_LOOP_START(static, kStatic)
AMASIA_LOOP_START(dynamic, kDynamic)
AMASIA_LOOP_START(guided, kGuided)
AMASIA_LOOP_START(nonmonotonic_dynamic, kDynamic)
AMASIA_LOOP_START(nonmonotonic_guided, kGuided)

#define AMASIA_LOOP_RUNTIME_START(NAME)                                                         \
  AMASIA_ENTRY bool GOMP_loop_##NAME##_start(long start, long end, long step, long* first,      \
                                             long* last) {                                      \
    static constinit Real<bool(long, long, long, long*, long*)> real{                           \
        "GOMP_loop_" #NAME "_start"};                                                           \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(start, end, step, first, last);                           \
    begin_long(*frame, start, end, step, runtime_schedule(is_monotonic(#NAME)),                 \
               __builtin_return_address(0));                                                    \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_LOOP_RUNTIME_START(runtime)
AMASIA_LOOP_RUNTIME_START(nonmonotonic_runtime)
AMASIA_LOOP_RUNTIME_START(maybe_nonmonotonic_runtime)

#define AMASIA_LOOP_ORDERED_START(NAME, KIND)                                                   \
  AMASIA_ENTRY bool GOMP_loop_ordered_##NAME##_start(long start, long end, long step,           \
                                                     long chunk, long* first, long* last) {     \
    static constinit Real<bool(long, long, long, long, long*, long*)> real{                     \
        "GOMP_loop_ordered_" #NAME "_start"};                                                   \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(start, end, step, chunk, first, last);                    \
    begin_ordered_long(*frame, start, end, step, {loops::ScheduleKind::KIND, chunk_of(chunk)},  \
                       __builtin_return_address(0));                                            \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_LOOP_ORDERED_START(static, kStatic)
AMASIA_LOOP_ORDERED_START(dynamic, kDynamic)
AMASIA_LOOP_ORDERED_START(guided, kGuided)

AMASIA_ENTRY bool GOMP_loop_ordered_runtime_start(long start, long end, long step, long* first,
                                                  long* last) {
  static constinit Real<bool(long, long, long, long*, long*)> real{
      "GOMP_loop_ordered_runtime_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(start, end, step, first, last);
  begin_ordered_long(*frame, start, end, step, runtime_schedule(true),
                     __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

#define AMASIA_LOOP_DOACROSS_START(NAME, KIND)                                                  \
  AMASIA_ENTRY bool GOMP_loop_doacross_##NAME##_start(unsigned dimensions, long* counts,        \
                                                      long chunk, long* first, long* last) {    \
    static constinit Real<bool(unsigned, long*, long, long*, long*)> real{                      \
        "GOMP_loop_doacross_" #NAME "_start"};                                                  \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(dimensions, counts, chunk, first, last);                  \
    begin_doacross(*frame, dimensions, counts, {loops::ScheduleKind::KIND, chunk_of(chunk)},    \
                   __builtin_return_address(0));                                                \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_LOOP_DOACROSS_START(static, kStatic)
AMASIA_LOOP_DOACROSS_START(dynamic, kDynamic)
AMASIA_LOOP_DOACROSS_START(guided, kGuided)

AMASIA_ENTRY bool GOMP_loop_doacross_runtime_start(unsigned dimensions, long* counts, long* first,
                                                   long* last) {
  static constinit Real<bool(unsigned, long*, long*, long*)> real{
      "GOMP_loop_doacross_runtime_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(dimensions, counts, first, last);
  begin_doacross(*frame, dimensions, counts, runtime_schedule(true),
                 __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

// The starts of loops with task reductions or memory for the team (conditional lastprivate, scan).
// With first == nullptr gcc deals out the iterations by itself.
AMASIA_ENTRY bool GOMP_loop_start(long start, long end, long step, long schedule, long chunk,
                                  long* first, long* last, std::uintptr_t* reductions,
                                  void** memory) {
  static constinit Real<bool(long, long, long, long, long, long*, long*, std::uintptr_t*, void**)>
      real{"GOMP_loop_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real(start, end, step, schedule, chunk, first, last, reductions, memory);
  }
  begin_shared_state(*frame, reductions, memory);
  if (first == nullptr) return true;
  begin_long(*frame, start, end, step, schedule_of(schedule, chunk_of(chunk)),
             __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

AMASIA_ENTRY bool GOMP_loop_ordered_start(long start, long end, long step, long schedule,
                                          long chunk, long* first, long* last,
                                          std::uintptr_t* reductions, void** memory) {
  static constinit Real<bool(long, long, long, long, long, long*, long*, std::uintptr_t*, void**)>
      real{"GOMP_loop_ordered_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real(start, end, step, schedule, chunk, first, last, reductions, memory);
  }
  begin_shared_state(*frame, reductions, memory);
  begin_ordered_long(*frame, start, end, step, schedule_of(schedule, chunk_of(chunk)),
                     __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

AMASIA_ENTRY bool GOMP_loop_doacross_start(unsigned dimensions, long* counts, long schedule,
                                           long chunk, long* first, long* last,
                                           std::uintptr_t* reductions, void** memory) {
  static constinit Real<bool(unsigned, long*, long, long, long*, long*, std::uintptr_t*, void**)>
      real{"GOMP_loop_doacross_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real(dimensions, counts, schedule, chunk, first, last, reductions, memory);
  }
  begin_shared_state(*frame, reductions, memory);
  begin_doacross(*frame, dimensions, counts, schedule_of(schedule, chunk_of(chunk)),
                 __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

#define AMASIA_LOOP_NEXT(NAME)                                        \
  AMASIA_ENTRY bool GOMP_loop_##NAME##_next(long* first, long* last) { \
    static constinit Next real{"GOMP_loop_" #NAME "_next"};           \
    return next_loop(real, first, last);                              \
  }
AMASIA_LOOP_NEXT(static)
AMASIA_LOOP_NEXT(dynamic)
AMASIA_LOOP_NEXT(guided)
AMASIA_LOOP_NEXT(runtime)
AMASIA_LOOP_NEXT(nonmonotonic_dynamic)
AMASIA_LOOP_NEXT(nonmonotonic_guided)
AMASIA_LOOP_NEXT(nonmonotonic_runtime)
AMASIA_LOOP_NEXT(maybe_nonmonotonic_runtime)
AMASIA_LOOP_NEXT(ordered_static)
AMASIA_LOOP_NEXT(ordered_dynamic)
AMASIA_LOOP_NEXT(ordered_guided)
AMASIA_LOOP_NEXT(ordered_runtime)

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
