// SPDX-License-Identifier: Apache-2.0
// kmpc entry points of work-sharing loops.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "omp/abi/kmpc.hpp"
#include "omp/abi/kmpc_parts.hpp"
#include "omp/native.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp::kmpc {
namespace {

using Gtid = std::int32_t;

// The real entry points that differ by the loop variable's type only.
template <typename T>
struct RealLoops {
  using Signed = std::make_signed_t<T>;
  Real<void(ident_t*, Gtid, std::int32_t, std::int32_t*, T*, T*, Signed*, Signed, Signed)>
      static_init;
  Real<void(ident_t*, Gtid, std::int32_t, T, T, Signed, Signed)> dispatch_init;
  Real<std::int32_t(ident_t*, Gtid, std::int32_t*, T*, T*, Signed*)> dispatch_next;
  Real<void(ident_t*, Gtid)> dispatch_fini;
};

template <typename T>
constexpr RealLoops<T> real_loops_named(const char* static_init, const char* init, const char* next,
                                        const char* fini) {
  return {decltype(RealLoops<T>::static_init){static_init},
          decltype(RealLoops<T>::dispatch_init){init}, decltype(RealLoops<T>::dispatch_next){next},
          decltype(RealLoops<T>::dispatch_fini){fini}};
}

constinit RealLoops<std::int32_t> real_4 =
    real_loops_named<std::int32_t>("__kmpc_for_static_init_4", "__kmpc_dispatch_init_4",
                                   "__kmpc_dispatch_next_4", "__kmpc_dispatch_fini_4");
constinit RealLoops<std::uint32_t> real_4u =
    real_loops_named<std::uint32_t>("__kmpc_for_static_init_4u", "__kmpc_dispatch_init_4u",
                                    "__kmpc_dispatch_next_4u", "__kmpc_dispatch_fini_4u");
constinit RealLoops<std::int64_t> real_8 =
    real_loops_named<std::int64_t>("__kmpc_for_static_init_8", "__kmpc_dispatch_init_8",
                                   "__kmpc_dispatch_next_8", "__kmpc_dispatch_fini_8");
constinit RealLoops<std::uint64_t> real_8u =
    real_loops_named<std::uint64_t>("__kmpc_for_static_init_8u", "__kmpc_dispatch_init_8u",
                                    "__kmpc_dispatch_next_8u", "__kmpc_dispatch_fini_8u");

constinit Real<void(ident_t*, Gtid)> real_static_fini{"__kmpc_for_static_fini"};
constinit Real<void(ident_t*, Gtid)> real_deinit{"__kmpc_dispatch_deinit"};
constinit Real<void(std::int32_t*, std::int32_t*)> real_get_schedule{"omp_get_schedule"};

// Bounds between which no iteration lies, whatever the type.
template <typename T>
void give_nothing(std::int32_t* last, T* lower, T* upper, bool up) {
  if (last != nullptr) *last = 0;
  *lower = up ? 1 : 0;
  *upper = up ? 0 : 1;
}

// Of ident_t::flags: the compiler made the loop of a sections construct.
constexpr std::int32_t kOfSections = 0x400;

// A thread's share under schedule(static, chunk): its first chunk, and the stride to the next ones,
// which the compiled loop adds itself. With fewer chunks than threads the stride ends the loop
// after the first one, and is kept small so that it cannot overflow.
template <typename T>
void chunked_share(const ThreadFrame& frame, const loops::Space& space, std::uint64_t chunk,
                   std::int32_t* last, T* lower, T* upper, std::make_signed_t<T>* stride) {
  const std::uint64_t size = std::clamp<std::uint64_t>(chunk, 1, space.count);
  const std::uint64_t chunks = (space.count - 1) / size + 1;
  const std::uint64_t threads = frame.team->size();
  const bool up = static_cast<std::int64_t>(space.step) > 0;
  *stride = static_cast<std::make_signed_t<T>>(size * std::min(chunks, threads) * space.step);
  if (last != nullptr) *last = frame.global_id == (chunks - 1) % threads ? 1 : 0;
  if (frame.global_id >= chunks) return give_nothing(last, lower, upper, up);
  const std::uint64_t begin = frame.global_id * size;
  *lower = loops::value_at<T>(space, begin);
  *upper = loops::value_at<T>(space, begin + size - 1);  // the compiled loop cuts the last chunk
}

template <typename T>
void block_share(const loops::Space& space, loops::Iterations share, std::int32_t* last, T* lower,
                 T* upper, std::make_signed_t<T>* stride) {
  *stride = static_cast<std::make_signed_t<T>>(space.count);
  if (share.empty()) {
    return give_nothing(last, lower, upper, static_cast<std::int64_t>(space.step) > 0);
  }
  if (last != nullptr) *last = share.end == space.count ? 1 : 0;
  *lower = loops::value_at<T>(space, share.begin);
  *upper = loops::value_at<T>(space, share.end - 1);
}

// Whether libomp has more to do at a loop than to say its bounds: a tool listens (OMPT), or it
// checks how constructs nest.
bool loops_are_watched() {
  static const bool watched = [] {
    bool found = false;
    on_native_stack([&found] {
      const auto object_of = [](void* code) {
        Dl_info info{};
        return dladdr(code, &info) != 0 ? info.dli_fbase : nullptr;
      };
      void* const start_tool = dlsym(RTLD_DEFAULT, "ompt_start_tool");  // libomp has one, too
      const auto own = reinterpret_cast<void*>(real_static_fini.get());
      found = std::getenv("OMP_TOOL_LIBRARIES") != nullptr ||
              std::getenv("KMP_CONSISTENCY_CHECK") != nullptr ||
              (start_tool != nullptr && object_of(start_tool) != object_of(own));
    });
    return found;
  }();
  return watched;
}

// Of a loop in a team of one thread its node knows the bounds without libomp, whose Debian package
// formats a text at each of them: 450 ns, as much as all else of a region that stays.
bool knows_bounds() { return thread_context.team_of_one && !loops_are_watched(); }

// As libomp: all of it at once, whatever the chunk.
template <typename T>
void whole_share(std::int32_t* last, const T* lower, const T* upper, std::make_signed_t<T>* stride,
                 std::make_signed_t<T> step) {
  using Signed = std::make_signed_t<T>;
  using Unsigned = std::make_unsigned_t<T>;
  const bool empty = step > 0 ? *upper < *lower : *lower < *upper;
  if (last != nullptr) *last = empty ? 0 : 1;
  const auto distance = static_cast<Unsigned>(static_cast<Unsigned>(*upper) -
                                              static_cast<Unsigned>(*lower));
  const auto end = static_cast<Unsigned>(step > 0 ? distance + 1u : distance - 1u);
  *stride = empty ? step : static_cast<Signed>(end);
}

LoopForm form_of(std::int32_t kind) {
  if (kind == kStaticChunked || kind == kOrderedLower + 1) return LoopForm::kChunks;
  return kind == kStaticBalancedChunked ? LoopForm::kVectorBlocks : LoopForm::kBlocks;
}

template <typename T>
void static_init(RealLoops<T>& real, ident_t* place, Gtid gtid, std::int32_t schedule,
                 std::int32_t* last, T* lower, T* upper, std::make_signed_t<T>* stride,
                 std::make_signed_t<T> step, std::make_signed_t<T> chunk, const void* site) {
  ThreadFrame* const frame = current_frame();
  const std::int32_t kind = schedule & ~kModifiers;
  if (frame == nullptr && kind <= kOrderedUpper && knows_bounds()) {
    return whole_share(last, lower, upper, stride, step);
  }
  if (frame == nullptr || kind > kOrderedUpper) {
    const HideFrame hide;
    // Builds of libomp that check themselves allocate here, which is dear on a managed stack.
    return on_native_stack([&] {
      real.static_init(place, gtid, schedule, last, lower, upper, stride, step, chunk);
    });
  }
  const loops::Space space = loops::space_through<T>(*lower, *upper, step);
  if (space.count == 0) {  // the bounds stay as they are: the compiled loop sees for itself
    if (last != nullptr) *last = 0;
    *stride = step;
    return;
  }
  const bool of_sections = place != nullptr && (place->flags & kOfSections) != 0;
  if (form_of(kind) == LoopForm::kBlocks && !of_sections && takes_parts(*frame, space)) {
    return block_share(space, part_of_loop(*frame, space, {site, place}), last, lower, upper,
                       stride);
  }
  frame->team->enter_loop(*frame, site);
  const std::uint64_t positive_chunk = chunk > 0 ? static_cast<std::uint64_t>(chunk) : 1;
  const std::uint32_t thread = frame->global_id, threads = frame->team->size();
  if (frame->book != nullptr) {
    const bool chunked = form_of(kind) != LoopForm::kBlocks;
    frame->book->note({site, place}, {.form = form_of(kind),
                                      .chunk = chunked ? positive_chunk : 0,
                                      .iterations = space.count});
  }
  switch (kind) {
    case kStaticChunked:
    case kOrderedLower + 1:
      return chunked_share(*frame, space, positive_chunk, last, lower, upper, stride);
    case kStaticBalancedChunked:
      return block_share(
          space, loops::static_block_of_chunks(space.count, positive_chunk, thread, threads), last,
          lower, upper, stride);
    default:
      if (of_sections) {
        return block_share(space,
                           loops::unweighted_block(space.count, frame->team->first_powers(),
                                                   frame->first_rank, frame->first_local_id),
                           last, lower, upper, stride);
      }
      return block_share(space, frame->team->static_share(*frame, space), last, lower, upper,
                         stride);
  }
}

// Schedules of dispatched loops that do not merge are the same ones at another base.
std::int32_t plain_kind(std::int32_t schedule) {
  const std::int32_t kind = schedule & ~kModifiers;
  return kind > kNoMergeLower ? kind - kNoMergeLower + kLower : kind;
}

// Schedules of loops with ordered parts are the same ones at a third base.
bool is_ordered(std::int32_t plain) { return plain > kOrderedLower && plain < kOrderedUpper; }

// Whether the numbers that a thread gets have to rise: compilers say so where they need not.
bool is_monotonic(std::int32_t schedule) { return (schedule & kNonmonotonic) == 0; }

// What a dispatched loop asks for. Chunks are made of `unit` iterations (a vector's length), the
// last one aside.
struct Dispatch {
  loops::ScheduleRequest schedule;
  std::uint64_t unit = 1;
};

Dispatch runtime_schedule(std::uint64_t unit) {
  std::int32_t kind = 0, chunk = 0;
  {
    const HideFrame hide;
    real_get_schedule(&kind, &chunk);
  }
  const std::uint64_t size = chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0;
  const bool rising = kind < 0;  // the monotonic bit
  switch (kind & 0x7fffffff) {
    case 1:
      return {named_by_user({loops::ScheduleKind::kStatic, size, rising}), unit};
    case 2:
      return {{loops::ScheduleKind::kDynamic, size, rising}, unit};
    case 3:
      if (unit > 1)
        return {{loops::ScheduleKind::kGuided, 0, rising},
                unit * std::max<std::uint64_t>(size, 1)};
      return {{loops::ScheduleKind::kGuided, size, rising}};
    default:
      return {named_by_user({loops::ScheduleKind::kAuto, 0, rising}), unit};
  }
}

Dispatch dispatch_of(std::int32_t kind, std::int64_t given_chunk) {
  const std::uint64_t chunk = given_chunk > 0 ? static_cast<std::uint64_t>(given_chunk) : 0;
  switch (kind) {
    case kStaticChunked:
      return {{loops::ScheduleKind::kStatic, std::max<std::uint64_t>(chunk, 1)}};
    case kStaticBalancedChunked:
      return {{loops::ScheduleKind::kStatic, 0}, std::max<std::uint64_t>(chunk, 1)};
    case kStatic:
    case kStaticGreedy:
    case kStaticBalanced:
      return {{loops::ScheduleKind::kStatic, 0}};
    case kDynamicChunked:
    case kStaticSteal:
      return {{loops::ScheduleKind::kDynamic, chunk}};
    case kRuntime:
      return runtime_schedule(1);
    case kRuntimeSimd:
      return runtime_schedule(std::max<std::uint64_t>(chunk, 1));
    case kAuto:
      return {{loops::ScheduleKind::kAuto, 0}};
    case kGuidedSimd:
      return {{loops::ScheduleKind::kGuided, 0}, std::max<std::uint64_t>(chunk, 1)};
    default:  // guided in its kinds, and trapezoidal, which shrinks its chunks too
      return {{loops::ScheduleKind::kGuided, chunk}};
  }
}

template <typename T>
void dispatch_init(RealLoops<T>& real, ident_t* place, Gtid gtid, std::int32_t schedule, T lower,
                   T upper, std::make_signed_t<T> step, std::make_signed_t<T> chunk,
                   const void* site) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {  // on the native stack as in static_init(); so are the calls below
    return on_native_stack(
        [&] { real.dispatch_init(place, gtid, schedule, lower, upper, step, chunk); });
  }
  const std::int32_t kind = plain_kind(schedule);
  if (is_ordered(kind)) {
    const Dispatch dispatch = dispatch_of(kind - kOrderedLower + kLower, chunk);
    const loops::Space space = loops::space_through<T>(lower, upper, step);
    frame->team->node().turns()->begin(*frame, space, dispatch.schedule, {site, place});
    frame->loop.iterations = space.count;
    return;
  }
  Dispatch dispatch = dispatch_of(kind, chunk);
  dispatch.schedule.monotonic |= is_monotonic(schedule);
  if (frame->doacross != nullptr) dispatch.schedule = loops::in_turn(dispatch.schedule);
  const loops::Space space = loops::space_through<T>(lower, upper, step);
  const bool is_plain = dispatch.schedule.kind == loops::ScheduleKind::kStatic &&
                        dispatch.schedule.chunk == 0 && !dispatch.schedule.monotonic;
  if (kind == kRuntime && is_plain && asks_for_parts(*frame, space)) {
    frame->team->node().work_sharing()->begin_static(*frame, space, {site, place, space.count});
    frame->loop.iterations = space.count;
    return;
  }
  // Handed out are units; dispatch_next makes iterations of them again.
  const std::uint64_t units = space.count == 0 ? 0 : (space.count - 1) / dispatch.unit + 1;
  frame->team->node().work_sharing()->begin(*frame, {space.first, space.step, units},
                                            dispatch.schedule, {site, place, space.count});
  frame->loop.unit = dispatch.unit;
  frame->loop.iterations = space.count;
}

template <typename T>
std::int32_t dispatch_next(RealLoops<T>& real, ident_t* place, Gtid gtid, std::int32_t* last,
                           T* lower, T* upper, std::make_signed_t<T>* stride) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) {
    std::int32_t more = 0;
    on_native_stack(
        [&] { more = real.dispatch_next(place, gtid, last, lower, upper, stride); });
    return more;
  }
  ThreadLoop& loop = frame->loop;
  loops::Iterations range;
  if (!next_iterations(*frame, range)) return 0;
  const bool is_last = range.end == loop.space.count;
  const std::uint64_t end = is_last ? loop.iterations : range.end * loop.unit;
  if (last != nullptr) *last = is_last ? 1 : 0;
  *lower = loops::value_at<T>(loop.space, range.begin * loop.unit);
  *upper = loops::value_at<T>(loop.space, end - 1);
  if (stride != nullptr) *stride = static_cast<std::make_signed_t<T>>(loop.space.step);
  return 1;
}

template <typename T>
void dispatch_fini(RealLoops<T>& real, ident_t* place, Gtid gtid) {
  if (current_frame() == nullptr) on_native_stack([&] { real.dispatch_fini(place, gtid); });
}

}  // namespace

#define AMASIA_LOOP_ENTRIES(suffix, T)                                                             \
  AMASIA_ENTRY void __kmpc_for_static_init_##suffix(                                               \
      ident_t* place, Gtid gtid, std::int32_t schedule, std::int32_t* last, T* lower, T* upper,    \
      std::make_signed_t<T>* stride, std::make_signed_t<T> step, std::make_signed_t<T> chunk) {    \
    static_init<T>(real_##suffix, place, gtid, schedule, last, lower, upper, stride, step, chunk,  \
                   __builtin_return_address(0));                                                   \
  }                                                                                                \
  AMASIA_ENTRY void __kmpc_dispatch_init_##suffix(                                                 \
      ident_t* place, Gtid gtid, std::int32_t schedule, T lower, T upper,                          \
      std::make_signed_t<T> step, std::make_signed_t<T> chunk) {                                   \
    dispatch_init<T>(real_##suffix, place, gtid, schedule, lower, upper, step, chunk,              \
                     __builtin_return_address(0));                                                 \
  }                                                                                                \
  AMASIA_ENTRY std::int32_t __kmpc_dispatch_next_##suffix(ident_t* place, Gtid gtid,               \
                                                          std::int32_t* last, T* lower, T* upper,  \
                                                          std::make_signed_t<T>* stride) {         \
    return dispatch_next<T>(real_##suffix, place, gtid, last, lower, upper, stride);               \
  }                                                                                                \
  AMASIA_ENTRY void __kmpc_dispatch_fini_##suffix(ident_t* place, Gtid gtid) {                     \
    dispatch_fini<T>(real_##suffix, place, gtid);                                                  \
  }

AMASIA_LOOP_ENTRIES(4, std::int32_t)
AMASIA_LOOP_ENTRIES(4u, std::uint32_t)
AMASIA_LOOP_ENTRIES(8, std::int64_t)
AMASIA_LOOP_ENTRIES(8u, std::uint64_t)

AMASIA_ENTRY void __kmpc_for_static_fini(ident_t* place, Gtid gtid) {
  if (const ThreadFrame* const frame = current_frame(); frame != nullptr) {
    if (takes_parts(*frame)) end_of_part();
    return;
  }
  if (!knows_bounds()) real_static_fini(place, gtid);
}

AMASIA_ENTRY void __kmpc_dispatch_deinit(ident_t* place, Gtid gtid) {
  if (current_frame() == nullptr) on_native_stack([&] { real_deinit(place, gtid); });
}

}  // namespace amasia::omp::kmpc
