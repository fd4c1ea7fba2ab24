// SPDX-License-Identifier: Apache-2.0
// kmpc entry points of constructs that order or choose threads.
#include <iterator>

#include "omp/abi/kmpc.hpp"
#include "omp/abi/kmpc_parts.hpp"
#include "omp/locks/lock_service.hpp"
#include "omp/team/spin_watch.hpp"
#include "omp/work_sharing/turns.hpp"
#include "os/os.hpp"

namespace amasia::omp::kmpc {
namespace {

using Place = ident_t*;
using Gtid = std::int32_t;
using Combine = void (*)(void*, void*);

constinit Real<void(Place, Gtid)> real_barrier{"__kmpc_barrier"};
constinit Real<std::int32_t(Place, Gtid)> real_barrier_master{"__kmpc_barrier_master"};
constinit Real<void(Place, Gtid)> real_end_barrier_master{"__kmpc_end_barrier_master"};
constinit Real<std::int32_t(Place, Gtid)> real_barrier_master_nowait{
    "__kmpc_barrier_master_nowait"};
constinit Real<std::int32_t(Place, Gtid)> real_cancel_barrier{"__kmpc_cancel_barrier"};
constinit Real<std::int32_t(Place, Gtid, std::int32_t)> real_cancel{"__kmpc_cancel"};
constinit Real<std::int32_t(Place, Gtid, std::int32_t)> real_cancellation_point{
    "__kmpc_cancellationpoint"};
constinit Real<std::int32_t(Place, Gtid)> real_master{"__kmpc_master"};
constinit Real<void(Place, Gtid)> real_end_master{"__kmpc_end_master"};
constinit Real<std::int32_t(Place, Gtid, std::int32_t)> real_masked{"__kmpc_masked"};
constinit Real<void(Place, Gtid)> real_end_masked{"__kmpc_end_masked"};
constinit Real<std::int32_t(Place, Gtid)> real_single{"__kmpc_single"};
constinit Real<void(Place, Gtid)> real_end_single{"__kmpc_end_single"};
constinit Real<void(Place, Gtid, std::size_t, void*, Combine, std::int32_t)> real_copyprivate{
    "__kmpc_copyprivate"};
constinit Real<void*(Place, Gtid, void*)> real_copyprivate_light{"__kmpc_copyprivate_light"};
constinit Real<std::int32_t(Place, Gtid, std::int32_t, std::size_t, void*, Combine, Critical*)>
    real_reduce{"__kmpc_reduce"};
constinit Real<std::int32_t(Place, Gtid, std::int32_t, std::size_t, void*, Combine, Critical*)>
    real_reduce_nowait{"__kmpc_reduce_nowait"};
constinit Real<void(Place, Gtid, Critical*)> real_end_reduce{"__kmpc_end_reduce"};
constinit Real<void(Place, Gtid, Critical*)> real_end_reduce_nowait{"__kmpc_end_reduce_nowait"};
constinit Real<void(Place, Gtid)> real_ordered{"__kmpc_ordered"};
constinit Real<void(Place, Gtid)> real_end_ordered{"__kmpc_end_ordered"};
constinit Real<std::int32_t(Place)> real_in_parallel{"__kmpc_in_parallel"};
constinit Real<std::int32_t(Place)> real_bound_thread_num{"__kmpc_bound_thread_num"};
constinit Real<std::int32_t(Place)> real_bound_num_threads{"__kmpc_bound_num_threads"};
constinit Real<std::int32_t(Place, Gtid)> real_sections_init{"__kmpc_sections_init"};
constinit Real<std::int32_t(Place, Gtid, std::int32_t)> real_next_section{"__kmpc_next_section"};
constinit Real<void(Place, Gtid)> real_end_sections{"__kmpc_end_sections"};

}  // namespace

AMASIA_ENTRY void __kmpc_barrier(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_barrier(place, gtid);
  frame->team->barrier_of_program(*frame, __builtin_return_address(0));
}

// Split barriers: the whole team gathers; the master's other half releases it.
AMASIA_ENTRY std::int32_t __kmpc_barrier_master(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_barrier_master(place, gtid);
  return frame->team->gather(*frame) ? 1 : 0;
}

AMASIA_ENTRY void __kmpc_end_barrier_master(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_end_barrier_master(place, gtid);
  frame->team->release(*frame);
}

AMASIA_ENTRY std::int32_t __kmpc_barrier_master_nowait(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_barrier_master_nowait(place, gtid);
  frame->team->barrier(*frame);
  return frame->global_id == 0 ? 1 : 0;
}

// Every thread of a cancelled region comes to one of these, or to the region's end.
AMASIA_ENTRY std::int32_t __kmpc_cancel_barrier(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_cancel_barrier(place, gtid);
  return frame->team->barrier_or_cancelled(*frame) ? 1 : 0;
}

namespace {
// kmp_int32 cncl_kind.
enum CancelKind : std::int32_t { kParallel = 1, kLoop = 2, kSections = 3, kTaskgroup = 4 };

Cancels cancelled_by(std::int32_t kind) {
  return kind == kParallel ? Cancels::kParallel : Cancels::kWorkshare;
}
}  // namespace

// A taskgroup is the node's own.
AMASIA_ENTRY std::int32_t __kmpc_cancel(Place place, Gtid gtid, std::int32_t kind) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr || kind == kTaskgroup) return real_cancel(place, gtid, kind);
  return frame->team->cancel(*frame, cancelled_by(kind)) ? 1 : 0;
}

AMASIA_ENTRY std::int32_t __kmpc_cancellationpoint(Place place, Gtid gtid, std::int32_t kind) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr || kind == kTaskgroup) return real_cancellation_point(place, gtid, kind);
  return frame->team->cancellation_point(*frame, cancelled_by(kind)) ? 1 : 0;
}

AMASIA_ENTRY std::int32_t __kmpc_master(Place place, Gtid gtid) {
  const ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_master(place, gtid);
  return frame->global_id == 0 ? 1 : 0;
}

AMASIA_ENTRY void __kmpc_end_master(Place place, Gtid gtid) {
  if (current_frame() == nullptr) real_end_master(place, gtid);
}

AMASIA_ENTRY std::int32_t __kmpc_masked(Place place, Gtid gtid, std::int32_t filter) {
  const ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_masked(place, gtid, filter);
  return static_cast<std::int64_t>(frame->global_id) == filter ? 1 : 0;
}

AMASIA_ENTRY void __kmpc_end_masked(Place place, Gtid gtid) {
  if (current_frame() == nullptr) real_end_masked(place, gtid);
}

AMASIA_ENTRY std::int32_t __kmpc_single(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_single(place, gtid);
  return frame->team->single(*frame) ? 1 : 0;
}

AMASIA_ENTRY void __kmpc_end_single(Place place, Gtid gtid) {
  if (current_frame() == nullptr) real_end_single(place, gtid);
}

AMASIA_ENTRY void __kmpc_copyprivate(Place place, Gtid gtid, std::size_t size, void* data,
                                     Combine copy, std::int32_t did_it) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_copyprivate(place, gtid, size, data, copy, did_it);
  // Flang calls once for each variable, with its address and size 0.
  frame->team->copy_private(*frame, {data, size / sizeof(void*)}, copy, did_it != 0);
}

// The caller copies, and then comes to a barrier of its own.
AMASIA_ENTRY void* __kmpc_copyprivate_light(Place place, Gtid gtid, void* data) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_copyprivate_light(place, gtid, data);
  std::optional<std::uint64_t> given;
  if (data != nullptr) given = reinterpret_cast<std::uint64_t>(data);
  return reinterpret_cast<void*>(frame->team->barrier_with(*frame, given));
}

namespace {
// A thread of a team that has been cancelled comes to no reduction, and the others must not wait
// for it: each adds its copies by itself, with the job's lock of that name.
bool reduces_alone(const ThreadFrame& frame) { return frame.team->can_be_cancelled(); }

// `size` is that of the list, which holds the addresses of `size / 8` private copies.
std::int32_t reduce_in_team(ThreadFrame& frame, std::size_t size, void* list, Combine combine,
                            Critical* lock, bool nowait) {
  if (reduces_alone(frame)) {
    frame.team->node().locks()->acquire(lock_key(lock));
    return 1;
  }
  const Reduction reduction{{static_cast<void**>(list), size / sizeof(void*)}, combine};
  return frame.team->reduce(frame, reduction, nowait) ? 1 : 0;
}

// Not for inlining: the thread may have another frame when its other parts have been executed.
[[gnu::noinline]] std::int32_t reduce_here(std::size_t size, void* list, Combine combine,
                                           Critical* lock) {
  return reduce_in_team(*current_frame(), size, list, combine, lock, true);
}
[[gnu::noinline]] std::int32_t reduce_parts(std::size_t size, void* list, Combine combine,
                                            Critical* lock) {
  if (is_part_of_reduction(static_cast<void**>(list), combine)) return 0;
  return reduce_here(size, list, combine, lock);
}

void end_reduction(ThreadFrame& frame, const Critical* lock, bool nowait) {
  if (!reduces_alone(frame)) return frame.team->reduce_end(frame, nowait);
  frame.team->node().locks()->release(lock_key(lock));
  if (!nowait) frame.team->barrier(frame);
}

// The next runtime keeps the address of a lock of its own in the compiler's word, which is managed
// memory: another node would take it for its own. So it gets a word of this node. Two reductions
// that share one only wait for each other: a thread is in one at a time.
Critical* local_word(const Critical* lock) {
  static Critical words[256];
  return &words[reinterpret_cast<std::uintptr_t>(lock) / sizeof(Critical) % std::size(words)];
}

}  // namespace

AMASIA_ENTRY std::int32_t __kmpc_reduce(Place place, Gtid gtid, std::int32_t count,
                                        std::size_t size, void* list, Combine combine,
                                        Critical* lock) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real_reduce(place, gtid, count, size, list, combine, local_word(lock));
  }
  return reduce_in_team(*frame, size, list, combine, lock, false);
}

AMASIA_ENTRY std::int32_t __kmpc_reduce_nowait(Place place, Gtid gtid, std::int32_t count,
                                               std::size_t size, void* list, Combine combine,
                                               Critical* lock) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    return real_reduce_nowait(place, gtid, count, size, list, combine, local_word(lock));
  }
  if (takes_parts(*frame)) return reduce_parts(size, list, combine, lock);
  return reduce_in_team(*frame, size, list, combine, lock, true);
}

AMASIA_ENTRY void __kmpc_end_reduce(Place place, Gtid gtid, Critical* lock) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_end_reduce(place, gtid, local_word(lock));
  end_reduction(*frame, lock, false);
}

AMASIA_ENTRY void __kmpc_end_reduce_nowait(Place place, Gtid gtid, Critical* lock) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_end_reduce_nowait(place, gtid, local_word(lock));
  end_reduction(*frame, lock, true);
}

AMASIA_ENTRY void __kmpc_ordered(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_ordered(place, gtid);
  frame->team->node().turns()->enter(*frame);
}

AMASIA_ENTRY void __kmpc_end_ordered(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_end_ordered(place, gtid);
  frame->team->node().turns()->leave(*frame);
}

// A fence is a fence on every node; the memory below is sequentially consistent. Who looks for what
// another thread will write flushes before each look, and that one may be here on the same core.
AMASIA_ENTRY void __kmpc_flush(Place) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (SpinWatch::of_process().watches()) os::yield_core();
}

AMASIA_ENTRY std::int32_t __kmpc_in_parallel(Place place) {
  return current_frame() != nullptr ? 1 : real_in_parallel(place);
}

AMASIA_ENTRY std::int32_t __kmpc_bound_thread_num(Place place) {
  const ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_bound_thread_num(place);
  return static_cast<std::int32_t>(frame->global_id);
}

AMASIA_ENTRY std::int32_t __kmpc_bound_num_threads(Place place) {
  const ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_bound_num_threads(place);
  return static_cast<std::int32_t>(frame->team->size());
}

AMASIA_ENTRY std::int32_t __kmpc_sections_init(Place place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_sections_init(place, gtid);
  frame->team->begin_sections(*frame);
  return 1;
}

AMASIA_ENTRY std::int32_t __kmpc_next_section(Place place, Gtid gtid, std::int32_t count) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_next_section(place, gtid, count);
  const auto sections = static_cast<std::uint32_t>(count < 0 ? 0 : count);
  return static_cast<std::int32_t>(frame->team->next_section(*frame, sections));
}

AMASIA_ENTRY void __kmpc_end_sections(Place place, Gtid gtid) {
  if (current_frame() == nullptr) real_end_sections(place, gtid);
}

}  // namespace amasia::omp::kmpc
