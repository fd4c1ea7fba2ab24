// SPDX-License-Identifier: Apache-2.0
// GOMP entry points of loops whose variable is an unsigned long long (gcc's for unsigned types that
// do not fit a long). `up`: the loop rises; a falling one's step is its two's complement.
#include "omp/abi/gomp_constructs.hpp"
#include "omp/abi/gomp_reductions.hpp"

namespace amasia::omp::gomp {
namespace {
using Next = Real<bool(Ull*, Ull*)>;

bool next_loop(Next& real, Ull* begin, Ull* end) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(begin, end);
  return next_chunk(*frame, begin, end);
}
}  // namespace

#define AMASIA_ULL_START(NAME, KIND)                                                            \
  AMASIA_ENTRY bool GOMP_loop_ull_##NAME##_start(bool up, Ull start, Ull end, Ull step,         \
                                                 Ull chunk, Ull* first, Ull* last) {            \
    static constinit Real<bool(bool, Ull, Ull, Ull, Ull, Ull*, Ull*)> real{                     \
        "GOMP_loop_ull_" #NAME "_start"};                                                       \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(up, start, end, step, chunk, first, last);                \
    begin_ull(*frame, up, start, end, step,                                                     \
              {loops::ScheduleKind::KIND, chunk, is_monotonic(#NAME)},                          \
              __builtin_return_address(0));                                                     \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_ULL_START(static, kStatic)
AMASIA_ULL_START(dynamic, kDynamic)
AMASIA_ULL_START(guided, kGuided)
AMASIA_ULL_START(nonmonotonic_dynamic, kDynamic)
AMASIA_ULL_START(nonmonotonic_guided, kGuided)

#define AMASIA_ULL_RUNTIME_START(NAME)                                                          \
  AMASIA_ENTRY bool GOMP_loop_ull_##NAME##_start(bool up, Ull start, Ull end, Ull step,         \
                                                 Ull* first, Ull* last) {                       \
    static constinit Real<bool(bool, Ull, Ull, Ull, Ull*, Ull*)> real{                          \
        "GOMP_loop_ull_" #NAME "_start"};                                                       \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(up, start, end, step, first, last);                       \
    begin_ull(*frame, up, start, end, step, runtime_schedule(is_monotonic(#NAME)),              \
              __builtin_return_address(0));                                                     \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_ULL_RUNTIME_START(runtime)
AMASIA_ULL_RUNTIME_START(nonmonotonic_runtime)
AMASIA_ULL_RUNTIME_START(maybe_nonmonotonic_runtime)

#define AMASIA_ULL_ORDERED_START(NAME, KIND)                                                    \
  AMASIA_ENTRY bool GOMP_loop_ull_ordered_##NAME##_start(bool up, Ull start, Ull end, Ull step, \
                                                         Ull chunk, Ull* first, Ull* last) {    \
    static constinit Real<bool(bool, Ull, Ull, Ull, Ull, Ull*, Ull*)> real{                     \
        "GOMP_loop_ull_ordered_" #NAME "_start"};                                               \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(up, start, end, step, chunk, first, last);                \
    begin_ordered_ull(*frame, up, start, end, step, {loops::ScheduleKind::KIND, chunk},         \
                      __builtin_return_address(0));                                             \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_ULL_ORDERED_START(static, kStatic)
AMASIA_ULL_ORDERED_START(dynamic, kDynamic)
AMASIA_ULL_ORDERED_START(guided, kGuided)

AMASIA_ENTRY bool GOMP_loop_ull_ordered_runtime_start(bool up, Ull start, Ull end, Ull step,
                                                      Ull* first, Ull* last) {
  static constinit Real<bool(bool, Ull, Ull, Ull, Ull*, Ull*)> real{
      "GOMP_loop_ull_ordered_runtime_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(up, start, end, step, first, last);
  begin_ordered_ull(*frame, up, start, end, step, runtime_schedule(true),
                    __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

#define AMASIA_ULL_DOACROSS_START(NAME, KIND)                                                   \
  AMASIA_ENTRY bool GOMP_loop_ull_doacross_##NAME##_start(unsigned dimensions, Ull* counts,     \
                                                          Ull chunk, Ull* first, Ull* last) {   \
    static constinit Real<bool(unsigned, Ull*, Ull, Ull*, Ull*)> real{                          \
        "GOMP_loop_ull_doacross_" #NAME "_start"};                                              \
    ThreadFrame* const frame = current_frame();                                                 \
    if (frame == nullptr) return real(dimensions, counts, chunk, first, last);                  \
    begin_doacross(*frame, dimensions, counts, {loops::ScheduleKind::KIND, chunk},              \
                   __builtin_return_address(0));                                                \
    return next_chunk(*frame, first, last);                                                     \
  }
AMASIA_ULL_DOACROSS_START(static, kStatic)
AMASIA_ULL_DOACROSS_START(dynamic, kDynamic)
AMASIA_ULL_DOACROSS_START(guided, kGuided)

AMASIA_ENTRY bool GOMP_loop_ull_doacross_runtime_start(unsigned dimensions, Ull* counts,
                                                       Ull* first, Ull* last) {
  static constinit Real<bool(unsigned, Ull*, Ull*, Ull*)> real{
      "GOMP_loop_ull_doacross_runtime_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(dimensions, counts, first, last);
  begin_doacross(*frame, dimensions, counts, runtime_schedule(true),
                 __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

AMASIA_ENTRY bool GOMP_loop_ull_start(bool up, Ull start, Ull end, Ull step, long schedule,
                                      Ull chunk, Ull* first, Ull* last, std::uintptr_t* reductions,
                                      void** memory) {
  static constinit
      Real<bool(bool, Ull, Ull, Ull, long, Ull, Ull*, Ull*, std::uintptr_t*, void**)>
          real{"GOMP_loop_ull_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real(up, start, end, step, schedule, chunk, first, last, reductions, memory);
  }
  begin_shared_state(*frame, reductions, memory);
  if (first == nullptr) return true;
  begin_ull(*frame, up, start, end, step, schedule_of(schedule, chunk),
            __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

AMASIA_ENTRY bool GOMP_loop_ull_ordered_start(bool up, Ull start, Ull end, Ull step, long schedule,
                                              Ull chunk, Ull* first, Ull* last,
                                              std::uintptr_t* reductions, void** memory) {
  static constinit
      Real<bool(bool, Ull, Ull, Ull, long, Ull, Ull*, Ull*, std::uintptr_t*, void**)>
          real{"GOMP_loop_ull_ordered_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real(up, start, end, step, schedule, chunk, first, last, reductions, memory);
  }
  begin_shared_state(*frame, reductions, memory);
  begin_ordered_ull(*frame, up, start, end, step, schedule_of(schedule, chunk),
                    __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

AMASIA_ENTRY bool GOMP_loop_ull_doacross_start(unsigned dimensions, Ull* counts, long schedule,
                                               Ull chunk, Ull* first, Ull* last,
                                               std::uintptr_t* reductions, void** memory) {
  static constinit Real<bool(unsigned, Ull*, long, Ull, Ull*, Ull*, std::uintptr_t*, void**)> real{
      "GOMP_loop_ull_doacross_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real(dimensions, counts, schedule, chunk, first, last, reductions, memory);
  }
  begin_shared_state(*frame, reductions, memory);
  begin_doacross(*frame, dimensions, counts, schedule_of(schedule, chunk),
                 __builtin_return_address(0));
  return next_chunk(*frame, first, last);
}

#define AMASIA_ULL_NEXT(NAME)                                            \
  AMASIA_ENTRY bool GOMP_loop_ull_##NAME##_next(Ull* first, Ull* last) { \
    static constinit Next real{"GOMP_loop_ull_" #NAME "_next"};          \
    return next_loop(real, first, last);                                 \
  }
AMASIA_ULL_NEXT(static)
AMASIA_ULL_NEXT(dynamic)
AMASIA_ULL_NEXT(guided)
AMASIA_ULL_NEXT(runtime)
AMASIA_ULL_NEXT(nonmonotonic_dynamic)
AMASIA_ULL_NEXT(nonmonotonic_guided)
AMASIA_ULL_NEXT(nonmonotonic_runtime)
AMASIA_ULL_NEXT(maybe_nonmonotonic_runtime)
AMASIA_ULL_NEXT(ordered_static)
AMASIA_ULL_NEXT(ordered_dynamic)
AMASIA_ULL_NEXT(ordered_guided)
AMASIA_ULL_NEXT(ordered_runtime)

}  // namespace amasia::omp::gomp
