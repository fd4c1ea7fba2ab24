// SPDX-License-Identifier: Apache-2.0
// The omp_* calls and their Fortran names whose answers differ in a global team. Both compilers'
// runtimes export them, so which ABI a program uses does not matter here.
#include "omp/abi/omp_api.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace amasia::omp {
namespace {

using Query = Real<std::int32_t()>;
using LevelQuery = Real<std::int32_t(std::int32_t)>;

constinit Query real_thread{"omp_get_thread_num"};
constinit Query real_team_size{"omp_get_num_threads"};
constinit Query real_max_threads{"omp_get_max_threads"};
constinit Query real_processors{"omp_get_num_procs"};
constinit Query real_in_parallel{"omp_in_parallel"};
constinit Query real_level{"omp_get_level"};
constinit Query real_active_level{"omp_get_active_level"};
constinit LevelQuery real_ancestor{"omp_get_ancestor_thread_num"};
constinit LevelQuery real_size_at{"omp_get_team_size"};
constinit Real<void(std::int32_t)> real_set_threads{"omp_set_num_threads"};
constinit Real<void(std::int32_t)> real_set_dynamic{"omp_set_dynamic"};
constinit Real<void(std::int32_t, std::int32_t)> real_set_schedule{"omp_set_schedule"};

}  // namespace

Abi abi_of_runtime() {
  // Relaxed: the same value whoever computes it. 0: not known yet.
  static constinit std::atomic<int> known{0};
  int abi = known.load(std::memory_order_relaxed);
  if (abi == 0) {
    Dl_info queries{}, forks{};
    void* const fork = find_real("__kmpc_fork_call");
    const bool kmpc = fork != nullptr && dladdr(fork, &forks) != 0 &&
                      dladdr(reinterpret_cast<void*>(real_thread.get()), &queries) != 0 &&
                      forks.dli_fbase == queries.dli_fbase;
    abi = kmpc ? 1 : 2;
    known.store(abi, std::memory_order_relaxed);
  }
  return abi == 1 ? Abi::kKmpc : Abi::kGomp;
}

// Relaxed: a thread that forks while another makes an allocator does not have its handle yet.
static constinit std::atomic<bool> own_allocator{false};
bool has_own_allocator() { return own_allocator.load(std::memory_order_relaxed); }

namespace {

// A thread that has come home from another node is in no region to the next runtime, and one in a
// region that such a thread has forked is in one less than to the program.
std::int32_t levels_missed() {
  const ThreadFrame* const outer = outer_frame();
  return outer != nullptr && outer->is_guest ? 1 : 0;
}

}  // namespace

std::int32_t region_level() {
  return current_frame() != nullptr ? 1 : real_level() + levels_missed();
}

namespace {

// A thread that is in no region is given the job's number of threads before it is asked for it.
void adopt_thread() {
  Node* const node = current_node();
  if (node != nullptr) node->adopt_thread(abi_of_runtime());
}

// An 8-byte argument of a call that has 4 bytes for it; what does not fit is as wrong as the limit.
std::int32_t narrowed(std::int64_t value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value, Limits::min(), Limits::max()));
}

// Where it stands in for threads of a larger team: whether that is what is asked for.
bool stands_in(const ThreadFrame& frame, const void* return_address) {
  return frame.parts.inside &&
         frame.team->numbered().are_asked_for_at(frame.team->function(), return_address);
}

std::int32_t thread_number(const void* return_address) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_thread();
  if (stands_in(*frame, return_address)) return static_cast<std::int32_t>(frame->parts.number);
  ++frame->asked_number;
  return static_cast<std::int32_t>(frame->global_id);
}

std::int32_t team_size(const void* return_address) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_team_size();
  if (stands_in(*frame, return_address)) {
    return static_cast<std::int32_t>(frame->team->numbered().threads);
  }
  ++frame->asked_size;
  return static_cast<std::int32_t>(frame->team->size());
}

std::int32_t max_threads() {
  adopt_thread();
  if (ThreadFrame* const frame = current_frame(); frame != nullptr) {
    frame->totals.marks |= kKnowsTeamSize;
  } else if (Node* const node = current_node(); node != nullptr) {
    node->note_size_asked();
  }
  return real_max_threads();
}

// A program that says how many threads it wants may count on them.
void fix_team_size() {
  Node* const node = current_node();
  if (node != nullptr) node->fix_team_size();
}

void set_dynamic(std::int32_t on) {
  if (on == 0) fix_team_size();
  real_set_dynamic(on);
}

void set_threads(std::int32_t threads) {
  adopt_thread();
  fix_team_size();
  real_set_threads(threads);
}

void set_schedule(std::int32_t kind, std::int32_t chunk) {
  if (Node* const node = current_node(); node != nullptr) node->note_schedule_set();
  real_set_schedule(kind, chunk);
}

// The processors of all nodes, as far as regions would use them.
std::int32_t processors() {
  const Node* const node = current_node();
  if (node == nullptr) return real_processors();
  return static_cast<std::int32_t>(node->cores());
}

std::int32_t in_parallel() { return outer_frame() != nullptr ? 1 : real_in_parallel(); }

// A node team of one thread is no active region to the next runtime, but the global team is one.
std::int32_t active_level() {
  if (current_frame() != nullptr) return 1;
  const ThreadFrame* const outer = outer_frame();
  const std::int32_t missed = outer != nullptr && outer->serial_below ? 1 : 0;
  return real_active_level() + missed;
}

std::int32_t ancestor(std::int32_t at) {
  const ThreadFrame* const outer = outer_frame();
  if (outer == nullptr) return real_ancestor(at);
  if (at == 1) return static_cast<std::int32_t>(outer->global_id);
  if (at == 0) return 0;
  return current_frame() != nullptr ? -1 : real_ancestor(at - levels_missed());
}

std::int32_t size_at(std::int32_t at) {
  const ThreadFrame* const outer = outer_frame();
  if (outer == nullptr) return real_size_at(at);
  if (at == 1) return static_cast<std::int32_t>(outer->team->size());
  if (at == 0) return 1;
  return current_frame() != nullptr ? -1 : real_size_at(at - levels_missed());
}

}  // namespace

#define AMASIA_QUERY(NAME, FUNCTION)                         \
  AMASIA_ENTRY std::int32_t NAME() { return FUNCTION(); }    \
  AMASIA_ENTRY std::int32_t NAME##_() { return FUNCTION(); }
AMASIA_QUERY(omp_get_max_threads, max_threads)
AMASIA_QUERY(omp_get_num_procs, processors)
AMASIA_QUERY(omp_in_parallel, in_parallel)
AMASIA_QUERY(omp_get_level, region_level)
AMASIA_QUERY(omp_get_active_level, active_level)

#define AMASIA_QUERY_OF_TEAM(NAME, FUNCTION)                                               \
  AMASIA_ENTRY std::int32_t NAME() { return FUNCTION(__builtin_return_address(0)); }       \
  AMASIA_ENTRY std::int32_t NAME##_() { return FUNCTION(__builtin_return_address(0)); }
AMASIA_QUERY_OF_TEAM(omp_get_thread_num, thread_number)
AMASIA_QUERY_OF_TEAM(omp_get_num_threads, team_size)

#define AMASIA_LEVEL_QUERY(NAME, FUNCTION)                                                      \
  AMASIA_ENTRY std::int32_t NAME(std::int32_t at) { return FUNCTION(at); }                      \
  AMASIA_ENTRY std::int32_t NAME##_(const std::int32_t* at) { return FUNCTION(*at); }           \
  AMASIA_ENTRY std::int32_t NAME##_8_(const std::int64_t* at) {                                 \
    return FUNCTION(narrowed(*at));                                                             \
  }
AMASIA_LEVEL_QUERY(omp_get_ancestor_thread_num, ancestor)
AMASIA_LEVEL_QUERY(omp_get_team_size, size_at)

AMASIA_ENTRY void omp_set_num_threads(std::int32_t threads) { set_threads(threads); }
AMASIA_ENTRY void omp_set_num_threads_(const std::int32_t* threads) { set_threads(*threads); }
AMASIA_ENTRY void omp_set_num_threads_8_(const std::int64_t* threads) {
  set_threads(narrowed(*threads));
}

AMASIA_ENTRY void omp_set_dynamic(std::int32_t on) { set_dynamic(on); }
AMASIA_ENTRY void omp_set_dynamic_(const std::int32_t* on) { set_dynamic(*on); }
AMASIA_ENTRY void omp_set_dynamic_8_(const std::int64_t* on) { set_dynamic(*on != 0 ? 1 : 0); }

AMASIA_ENTRY void omp_set_schedule(std::int32_t kind, std::int32_t chunk) {
  set_schedule(kind, chunk);
}
AMASIA_ENTRY void omp_set_schedule_(const std::int32_t* kind, const std::int32_t* chunk) {
  set_schedule(*kind, *chunk);
}
AMASIA_ENTRY void omp_set_schedule_8_(const std::int32_t* kind, const std::int64_t* chunk) {
  set_schedule(*kind, narrowed(*chunk));
}

// The next runtime may end its idle threads.
#define AMASIA_PAUSE(NAME, PARAMETERS, ...)                             \
  AMASIA_ENTRY std::int32_t NAME PARAMETERS {                           \
    static constinit Real<std::int32_t PARAMETERS> real{#NAME};         \
    if (Node* const node = current_node()) node->pack_thread_values();  \
    return real(__VA_ARGS__);                                           \
  }
AMASIA_PAUSE(omp_pause_resource, (std::int32_t kind, std::int32_t device), kind, device)
AMASIA_PAUSE(omp_pause_resource_, (const std::int32_t* kind, const std::int32_t* device), kind,
             device)
AMASIA_PAUSE(omp_pause_resource_all, (std::int32_t kind), kind)
AMASIA_PAUSE(omp_pause_resource_all_, (const std::int32_t* kind), kind)

AMASIA_ENTRY std::uintptr_t omp_init_allocator(std::uintptr_t space, std::int32_t count,
                                               const void* traits) {
  static constinit Real<std::uintptr_t(std::uintptr_t, std::int32_t, const void*)> real{
      "omp_init_allocator"};
  own_allocator.store(true, std::memory_order_relaxed);
  return real(space, count, traits);
}
AMASIA_ENTRY std::uintptr_t omp_init_allocator_(const std::uintptr_t* space,
                                                const std::int32_t* count, const void* traits) {
  static constinit
      Real<std::uintptr_t(const std::uintptr_t*, const std::int32_t*, const void*)> real{
          "omp_init_allocator_"};
  own_allocator.store(true, std::memory_order_relaxed);
  return real(space, count, traits);
}
AMASIA_ENTRY std::uintptr_t omp_init_allocator_8_(const std::uintptr_t* space,
                                                  const std::int64_t* count, const void* traits) {
  static constinit
      Real<std::uintptr_t(const std::uintptr_t*, const std::int64_t*, const void*)> real{
          "omp_init_allocator_8_"};
  own_allocator.store(true, std::memory_order_relaxed);
  return real(space, count, traits);
}

}  // namespace amasia::omp
