// SPDX-License-Identifier: Apache-2.0
// GOMP entry points of barriers, single, sections, critical, ordered and cancel.
#include "omp/abi/gomp_reductions.hpp"
#include "omp/locks/lock_service.hpp"

namespace amasia::omp::gomp {
namespace {

// libgomp numbers sections from 1; 0: there are no more.
unsigned next_section(ThreadFrame& frame) {
  const std::uint32_t section = frame.team->next_section(frame, frame.sections);
  return section < frame.sections ? section + 1 : 0;
}

}  // namespace

void begin_sections(ThreadFrame& frame, std::uint32_t count) {
  frame.sections = count;
  frame.team->begin_sections(frame);
}

AMASIA_ENTRY void GOMP_barrier() {
  static constinit Real<void()> real{"GOMP_barrier"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  frame->team->barrier_of_program(*frame, __builtin_return_address(0));
}

AMASIA_ENTRY bool GOMP_barrier_cancel() {
  static constinit Real<bool()> real{"GOMP_barrier_cancel"};
  ThreadFrame* const frame = current_frame();
  return frame == nullptr ? real() : frame->team->barrier_or_cancelled(*frame);
}

namespace {
// What GOMP_cancel is told (gomp-constants.h).
enum CancelKind : int { kParallel = 1, kLoop = 2, kSections = 4, kTaskgroup = 8 };

Cancels cancelled_by(int which) {
  return (which & kParallel) != 0 ? Cancels::kParallel : Cancels::kWorkshare;
}
}  // namespace

// A taskgroup is the node's own. `cancel`: what the if clause says.
AMASIA_ENTRY bool GOMP_cancel(int which, bool cancel) {
  static constinit Real<bool(int, bool)> real{"GOMP_cancel"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr || (which & kTaskgroup) != 0) return real(which, cancel);
  if (!cancel) return frame->team->cancellation_point(*frame, cancelled_by(which));
  return frame->team->cancel(*frame, cancelled_by(which));
}

AMASIA_ENTRY bool GOMP_cancellation_point(int which) {
  static constinit Real<bool(int)> real{"GOMP_cancellation_point"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr || (which & kTaskgroup) != 0) return real(which);
  return frame->team->cancellation_point(*frame, cancelled_by(which));
}

AMASIA_ENTRY bool GOMP_single_start() {
  static constinit Real<bool()> real{"GOMP_single_start"};
  ThreadFrame* const frame = current_frame();
  return frame == nullptr ? real() : frame->team->single(*frame);
}

// The thread that executes the construct gets nullptr; the others get, once it has ended, what it
// gave to GOMP_single_copy_end, or a copy of that. All come to GOMP_barrier when they have read it.
AMASIA_ENTRY void* GOMP_single_copy_start() {
  static constinit Real<void*()> real{"GOMP_single_copy_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  if (frame->team->single(*frame)) return nullptr;
  return frame->team->give_or_take(*frame, nullptr);
}

AMASIA_ENTRY void GOMP_single_copy_end(void* data) {
  static constinit Real<void(void*)> real{"GOMP_single_copy_end"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(data);
  frame->team->give_or_take(*frame, data);
}

AMASIA_ENTRY unsigned GOMP_sections_start(unsigned count) {
  static constinit Real<unsigned(unsigned)> real{"GOMP_sections_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(count);
  begin_sections(*frame, count);
  return next_section(*frame);
}

AMASIA_ENTRY unsigned GOMP_sections2_start(unsigned count, std::uintptr_t* reductions,
                                           void** memory) {
  static constinit Real<unsigned(unsigned, std::uintptr_t*, void**)> real{"GOMP_sections2_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(count, reductions, memory);
  begin_shared_state(*frame, reductions, memory);
  begin_sections(*frame, count);
  return next_section(*frame);
}

AMASIA_ENTRY unsigned GOMP_sections_next() {
  static constinit Real<unsigned()> real{"GOMP_sections_next"};
  ThreadFrame* const frame = current_frame();
  return frame == nullptr ? real() : next_section(*frame);
}

AMASIA_ENTRY void GOMP_sections_end() {
  static constinit Real<void()> real{"GOMP_sections_end"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  frame->team->barrier(*frame);
}

AMASIA_ENTRY bool GOMP_sections_end_cancel() {
  static constinit Real<bool()> real{"GOMP_sections_end_cancel"};
  ThreadFrame* const frame = current_frame();
  return frame == nullptr ? real() : frame->team->barrier_or_cancelled(*frame);
}

AMASIA_ENTRY void GOMP_sections_end_nowait() {
  static constinit Real<void()> real{"GOMP_sections_end_nowait"};
  if (current_frame() == nullptr) real();
}

AMASIA_ENTRY void GOMP_scope_start(std::uintptr_t* reductions) {
  static constinit Real<void(std::uintptr_t*)> real{"GOMP_scope_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(reductions);
  begin_shared_state(*frame, reductions, nullptr);
}

AMASIA_ENTRY void GOMP_ordered_start() {
  static constinit Real<void()> real{"GOMP_ordered_start"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  frame->team->node().turns()->enter(*frame);
}

AMASIA_ENTRY void GOMP_ordered_end() {
  static constinit Real<void()> real{"GOMP_ordered_end"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real();
  frame->team->node().turns()->leave(*frame);
}

AMASIA_ENTRY void GOMP_critical_start() {
  static constinit Real<void()> real{"GOMP_critical_start"};
  LockService* const service = current_locks();
  if (service == nullptr) return real();
  service->acquire(kUnnamedCritical);
}

AMASIA_ENTRY void GOMP_critical_end() {
  static constinit Real<void()> real{"GOMP_critical_end"};
  LockService* const service = current_locks();
  if (service == nullptr) return real();
  service->release(kUnnamedCritical);
}

AMASIA_ENTRY void GOMP_critical_name_start(void** name) {
  static constinit Real<void(void**)> real{"GOMP_critical_name_start"};
  LockService* const service = current_locks();
  if (service == nullptr) return real(name);
  service->acquire(lock_key(name));
}

AMASIA_ENTRY void GOMP_critical_name_end(void** name) {
  static constinit Real<void(void**)> real{"GOMP_critical_name_end"};
  LockService* const service = current_locks();
  if (service == nullptr) return real(name);
  service->release(lock_key(name));
}

AMASIA_ENTRY void GOMP_atomic_start() {
  static constinit Real<void()> real{"GOMP_atomic_start"};
  LockService* const service = current_locks();
  if (service == nullptr) return real();
  service->acquire(kGompAtomic);
}

AMASIA_ENTRY void GOMP_atomic_end() {
  static constinit Real<void()> real{"GOMP_atomic_end"};
  LockService* const service = current_locks();
  if (service == nullptr) return real();
  service->release(kGompAtomic);
}

}  // namespace amasia::omp::gomp
