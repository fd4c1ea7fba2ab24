// SPDX-License-Identifier: Apache-2.0
// GOMP entry points that begin and end regions.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "omp/abi/gomp.hpp"
#include "omp/abi/omp_api.hpp"
#include "omp/abi/openmp_runtime.hpp"
#include "omp/abi/passed_team.hpp"
#include "omp/native.hpp"
#include "omp/code/outlined_code.hpp"
#include "omp/team/spin_watch.hpp"

namespace amasia::omp::gomp {
namespace {

using Parallel = void(Outline, void*, unsigned, unsigned);

// A fork that is passed down: every thread must know that it is in a region of this node only. The
// first word stays the data's first, where GOMP_parallel_reductions looks for its list.
struct PassedDown {
  void* first_word;
  Outline function;
  void* data;
  Node* emulated_node;
  const ThreadFrame* outer;
  PassedTeam team;
  RegionStack stack;
};

PassedDown pass_down(Outline function, void* data, const PassedTeam& team = {}) {
  return {nullptr, function, data, thread_context.node, outer_frame(), team, {}};
}

// libgomp shows no team of one thread.
bool is_to_be_shown(const RegionRequest& request, const RegionPlan& plan) {
  if (plan.global()) return is_team_to_be_shown(request.proc_bind, plan.shares, plan.threads);
  return plan.threads != 1 && is_team_to_be_shown(request.proc_bind, {}, plan.threads);
}

void local_entry(void* passed) {
  const PassedDown fork = *static_cast<const PassedDown*>(passed);
  enter_local_team(fork.emulated_node, fork.outer);
  const std::uint32_t number = OpenMpRuntime::thread_number();
  fork.team.enter(number);
  fork.stack.call([&fork, number] {
    WatchedTeam::run(fork.team.watch, number, [&fork] { fork.function(fork.data); });
  });
  fork.team.leave(number);
}

// Thread-local variables of the program are where copyin's sources are: gcc puts their addresses
// into the data, whose size it does not tell. Libraries that no program writes copyin for are left
// out, since addresses of theirs (errno's) are met on any stack.
bool is_program_object(const char* name) {
  const std::string_view path = name;
  for (const std::string_view own : {"/libc.so", "/libgomp.so", "/libomp.so", "/libiomp5.so",
                                     "/libamasia", "/libstdc++.so", "/libm.so", "/libgcc_s.so",
                                     "/libgfortran.so", "/ld-linux", "/libucp.so", "/libuct.so",
                                     "/libucs.so", "/libucm.so"}) {
    if (path.find(own) != std::string_view::npos) return false;
  }
  return true;
}

constexpr std::size_t kWordsSearched = 64;

struct ThreadLocalSearch {
  std::span<void*> words;
  std::vector<void**> found;
};

int search_object(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<ThreadLocalSearch*>(argument);
  if (info->dlpi_tls_data == nullptr || !is_program_object(info->dlpi_name)) return 0;
  const auto* const begin = static_cast<const std::byte*>(info->dlpi_tls_data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    for (void*& word : search.words) {
      const auto* const address = static_cast<const std::byte*>(word);
      if (address >= begin && address < begin + info->dlpi_phdr[i].p_memsz) {
        search.found.push_back(&word);
      }
    }
  }
  return 0;
}

// Where in the data, which is on the caller's stack, addresses of thread-local variables of the
// forking thread stand.
std::vector<void**> thread_local_words(const Node& node, void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (data == nullptr || address % sizeof(void*) != 0) return {};
  if (!node.services().has_thread_locals()) return {};
  const auto end = reinterpret_cast<std::uintptr_t>(node.services().readable_end(data));
  const std::size_t readable = std::min(kWordsSearched, (end - address) / sizeof(void*));
  ThreadLocalSearch search{{static_cast<void**>(data), readable}, {}};
  dl_iterate_phdr(search_object, &search);
  return search.found;
}

// Carries a region across nodes, or forks it here by fork_here(closure, threads).
template <typename ForkHere>
void carry_region(RegionRequest request, Outline function, void* data, ForkHere fork_here) {
  Node& node = *current_node();
  void* const words[1] = {data};
  request.abi = Abi::kGomp;
  request.outlined = {reinterpret_cast<void*>(function), words};
  std::vector<void**> shared_locals;
  if (current_frame() == nullptr && thread_context.local_depth == 0) {
    shared_locals = thread_local_words(node, data);
    request.copied_in = shared_locals;
    const void* const code = request.outlined.function;
    const bool copies_in =
        !shared_locals.empty() && gcc_copies_in(code, dlsym(RTLD_DEFAULT, "omp_get_thread_num"),
                                                dlsym(RTLD_DEFAULT, "GOMP_barrier"));
    const bool shares = std::ranges::any_of(shared_locals, [&](void** word) {
      return may_use_word(code, static_cast<std::size_t>(reinterpret_cast<std::byte*>(word) -
                                                         static_cast<std::byte*>(data)));
    });
    if (!copies_in) request.copied_in = {};
    if (!copies_in && shares) request.must_stay = SingleReason::kThreadLocal;
  }
  if (has_own_allocator()) request.must_stay = SingleReason::kUnsupported;
  const RegionPlan plan = node.plan_region(request);
  request.shows_affinity = is_to_be_shown(request, plan);
  if (plan.global()) {
    node.run_region(request, plan);
    return;
  }
  if (plan.stands_in()) return node.run_here(request, plan);
  {
    const PlaceScope scope;
    PassedDown passed = pass_down(function, data, passed_team_of(node, request, plan));
    on_native_stack([&] {
      const WatchedTeam watched(passed.team.watch);
      fork_here(&passed, plan.threads);
    });
  }
  node.finish_single(plan);
}

template <typename T>
std::span<const std::byte> as_extra(const T& value) {
  static_assert(sizeof value <= kMaxRegionExtra);
  return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}

RegionRequest request_of(unsigned threads, unsigned flags) {
  RegionRequest request;
  request.threads = threads;
  request.proc_bind = static_cast<std::int32_t>(flags & 7);
  return request;
}

Combined combined_loop(long start, long end, long step, loops::ScheduleRequest schedule) {
  Combined combined;
  combined.space = loops::space_until(start, end, step);
  combined.schedule = schedule;
  combined.end = static_cast<std::uint64_t>(end);
  return combined;
}

// A combined parallel loop; `fork_here` as for carry_region.
template <typename ForkHere>
void carry_loop(Combined combined, Outline function, void* data, unsigned threads, unsigned flags,
                ForkHere fork_here) {
  combined.site = reinterpret_cast<const void*>(function);
  RegionRequest request = request_of(threads, flags);
  request.extra = as_extra(combined);
  carry_region(request, function, data, fork_here);
}

loops::ScheduleRequest chunked(loops::ScheduleKind kind, long chunk, std::string_view entry) {
  return {kind, chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0, is_monotonic(entry)};
}

// Regions of the old kind: the caller runs the outlined function between start and end. They stay
// on their node; what their threads refer to lives until the end.
struct OldRegion {
  PassedDown passed;
  RegionPlan plan;
  explicit OldRegion(const PassedDown& fork) : passed(fork) {}
};
thread_local std::vector<std::unique_ptr<OldRegion>> old_regions;

template <typename ForkHere>
void start_old(Outline function, void* data, unsigned threads, ForkHere fork_here) {
  Node& node = *current_node();
  void* const words[1] = {data};
  RegionRequest request = request_of(threads, 0);
  request.abi = Abi::kGomp;
  request.outlined = {reinterpret_cast<void*>(function), words};
  request.must_stay = SingleReason::kUnsupported;
  old_regions.push_back(std::make_unique<OldRegion>(pass_down(function, data)));
  OldRegion& region = *old_regions.back();
  region.plan = node.plan_region(request);
  request.shows_affinity = is_to_be_shown(request, region.plan);
  region.passed.team = passed_team_of(node, request, region.plan);
  region.passed.team.watch = nullptr;  // the forking thread's part is no call of ours
  fork_here(&region.passed, region.plan.threads);
  enter_serialized();
  if (request.shows_affinity) show_affinity();
}

}  // namespace

AMASIA_ENTRY void GOMP_parallel(Outline function, void* data, unsigned threads, unsigned flags) {
  static constinit Real<Parallel> real{"GOMP_parallel"};
  if (current_node() == nullptr) return real(function, data, threads, flags);
  carry_region(request_of(threads, flags), function, data, [&](void* passed, unsigned n) {
    real(local_entry, passed, n, flags);
  });
}

// reduction(task, …) on parallel: libgomp keeps the private copies per local thread.
AMASIA_ENTRY unsigned GOMP_parallel_reductions(Outline function, void* data, unsigned threads,
                                               unsigned flags) {
  static constinit Real<unsigned(Outline, void*, unsigned, unsigned)> real{
      "GOMP_parallel_reductions"};
  if (current_node() == nullptr) return real(function, data, threads, flags);
  RegionRequest request = request_of(threads, flags);
  request.must_stay = SingleReason::kUnsupported;
  unsigned size = 0;
  carry_region(request, function, data, [&](void* passed, unsigned n) {
    static_cast<PassedDown*>(passed)->first_word = *static_cast<void**>(data);
    size = real(local_entry, passed, n, flags);
  });
  return size;
}

#define AMASIA_PARALLEL_LOOP(NAME, KIND)                                                        \
  AMASIA_ENTRY void GOMP_parallel_loop_##NAME(Outline function, void* data, unsigned threads,   \
                                              long start, long end, long step, long chunk,      \
                                              unsigned flags) {                                 \
    static constinit Real<void(Outline, void*, unsigned, long, long, long, long, unsigned)>     \
        real{"GOMP_parallel_loop_" #NAME};                                                      \
    if (current_node() == nullptr) {                                                            \
      return real(function, data, threads, start, end, step, chunk, flags);                     \
    }                                                                                           \
    carry_loop(combined_loop(start, end, step,                                                  \
                             chunked(loops::ScheduleKind::KIND, chunk, #NAME)),                 \
               function, data, threads, flags, [&](void* passed, unsigned n) {                  \
                 real(local_entry, passed, n, start, end, step, chunk, flags);                  \
               });                                                                              \
  }
AMASIA_PARALLEL_LOOP(static, kStatic)
AMASIA_PARALLEL_LOOP(dynamic, kDynamic)
AMASIA_PARALLEL_LOOP(guided, kGuided)
AMASIA_PARALLEL_LOOP(nonmonotonic_dynamic, kDynamic)
AMASIA_PARALLEL_LOOP(nonmonotonic_guided, kGuided)

#define AMASIA_PARALLEL_LOOP_RUNTIME(NAME)                                                      \
  AMASIA_ENTRY void GOMP_parallel_loop_##NAME(Outline function, void* data, unsigned threads,   \
                                              long start, long end, long step,                  \
                                              unsigned flags) {                                 \
    static constinit Real<void(Outline, void*, unsigned, long, long, long, unsigned)> real{     \
        "GOMP_parallel_loop_" #NAME};                                                           \
    if (current_node() == nullptr) return real(function, data, threads, start, end, step, flags); \
    carry_loop(combined_loop(start, end, step, runtime_schedule(is_monotonic(#NAME))),          \
               function, data, threads, flags, [&](void* passed, unsigned n) {                  \
                 real(local_entry, passed, n, start, end, step, flags);                         \
               });                                                                              \
  }
AMASIA_PARALLEL_LOOP_RUNTIME(runtime)
AMASIA_PARALLEL_LOOP_RUNTIME(nonmonotonic_runtime)
AMASIA_PARALLEL_LOOP_RUNTIME(maybe_nonmonotonic_runtime)

AMASIA_ENTRY void GOMP_parallel_sections(Outline function, void* data, unsigned threads,
                                         unsigned count, unsigned flags) {
  static constinit Real<void(Outline, void*, unsigned, unsigned, unsigned)> real{
      "GOMP_parallel_sections"};
  if (current_node() == nullptr) return real(function, data, threads, count, flags);
  Combined combined;
  combined.construct = Combined::Construct::kSections;
  combined.sections = count;
  carry_loop(combined, function, data, threads, flags, [&](void* passed, unsigned n) {
    real(local_entry, passed, n, count, flags);
  });
}

AMASIA_ENTRY void GOMP_parallel_start(Outline function, void* data, unsigned threads) {
  static constinit Real<void(Outline, void*, unsigned)> real{"GOMP_parallel_start"};
  if (current_node() == nullptr) return real(function, data, threads);
  start_old(function, data, threads,
            [&](void* passed, unsigned n) { real(local_entry, passed, n); });
}

#define AMASIA_PARALLEL_LOOP_START(NAME)                                                        \
  AMASIA_ENTRY void GOMP_parallel_loop_##NAME##_start(Outline function, void* data,             \
                                                      unsigned threads, long start, long end,   \
                                                      long step, long chunk) {                  \
    static constinit Real<void(Outline, void*, unsigned, long, long, long, long)> real{         \
        "GOMP_parallel_loop_" #NAME "_start"};                                                  \
    if (current_node() == nullptr) {                                                            \
      return real(function, data, threads, start, end, step, chunk);                            \
    }                                                                                           \
    start_old(function, data, threads, [&](void* passed, unsigned n) {                          \
      real(local_entry, passed, n, start, end, step, chunk);                                    \
    });                                                                                         \
  }
AMASIA_PARALLEL_LOOP_START(static)
AMASIA_PARALLEL_LOOP_START(dynamic)
AMASIA_PARALLEL_LOOP_START(guided)

AMASIA_ENTRY void GOMP_parallel_loop_runtime_start(Outline function, void* data, unsigned threads,
                                                   long start, long end, long step) {
  static constinit Real<void(Outline, void*, unsigned, long, long, long)> real{
      "GOMP_parallel_loop_runtime_start"};
  if (current_node() == nullptr) return real(function, data, threads, start, end, step);
  start_old(function, data, threads, [&](void* passed, unsigned n) {
    real(local_entry, passed, n, start, end, step);
  });
}

AMASIA_ENTRY void GOMP_parallel_sections_start(Outline function, void* data, unsigned threads,
                                               unsigned count) {
  static constinit Real<void(Outline, void*, unsigned, unsigned)> real{
      "GOMP_parallel_sections_start"};
  if (current_node() == nullptr) return real(function, data, threads, count);
  start_old(function, data, threads,
            [&](void* passed, unsigned n) { real(local_entry, passed, n, count); });
}

AMASIA_ENTRY void GOMP_parallel_end() {
  static constinit Real<void()> real{"GOMP_parallel_end"};
  real();
  Node* const node = current_node();
  if (node == nullptr || old_regions.empty()) return;
  leave_serialized();
  node->finish_single(old_regions.back()->plan);
  old_regions.pop_back();
}

// teams on the host: libgomp runs the league's teams one after the other, on this node.
AMASIA_ENTRY void GOMP_teams_reg(Outline function, void* data, unsigned teams, unsigned limit,
                                 unsigned flags) {
  static constinit Real<void(Outline, void*, unsigned, unsigned, unsigned)> real{"GOMP_teams_reg"};
  if (current_node() == nullptr) return real(function, data, teams, limit, flags);
  const PlaceScope scope;
  PassedDown passed = pass_down(function, data);
  real(local_entry, &passed, teams, limit, flags);
}

// A target region that runs on the host is a world of its own: one thread, numbered 0.
AMASIA_ENTRY void GOMP_target(int device, Outline function, const void* unused, std::size_t count,
                              void** addresses, std::size_t* sizes, unsigned char* kinds) {
  static constinit Real<void(int, Outline, const void*, std::size_t, void**, std::size_t*,
                             unsigned char*)>
      real{"GOMP_target"};
  const PlaceScope scope;
  if (current_node() != nullptr) enter_local_team(thread_context.node, nullptr);
  real(device, function, unused, count, addresses, sizes, kinds);
}

AMASIA_ENTRY void GOMP_target_ext(int device, Outline function, std::size_t count,
                                  void** addresses, std::size_t* sizes, unsigned short* kinds,
                                  unsigned flags, void** depend, void** arguments) {
  static constinit Real<void(int, Outline, std::size_t, void**, std::size_t*, unsigned short*,
                             unsigned, void**, void**)>
      real{"GOMP_target_ext"};
  constexpr unsigned kNoWait = 1;  // GOMP_TARGET_FLAG_NOWAIT
  const PlaceScope scope;
  if (current_node() != nullptr) {
    enter_local_team(thread_context.node, nullptr);
    // As a task it would run later, where nothing tells that it is in a target region.
    flags &= ~kNoWait;
  }
  real(device, function, count, addresses, sizes, kinds, flags, depend, arguments);
}

}  // namespace amasia::omp::gomp
