// SPDX-License-Identifier: Apache-2.0
// kmpc entry points that begin and end regions.
#include <dlfcn.h>

#include <algorithm>
#include <cstdarg>
#include <vector>

#include "omp/abi/kmpc.hpp"
#include "omp/abi/omp_api.hpp"
#include "omp/abi/passed_team.hpp"
#include "omp/native.hpp"
#include "omp/code/outlined_code.hpp"
#include "omp/team/spin_watch.hpp"

namespace amasia::omp::kmpc {
namespace {

using Fork = void (*)(ident_t*, std::int32_t, Microtask, ...);

constinit Real<void()> real_fork{"__kmpc_fork_call"};
constinit Real<void()> real_fork_teams{"__kmpc_fork_teams"};
constinit Real<void(ident_t*, std::int32_t)> real_serialized{"__kmpc_serialized_parallel"};
constinit Real<void(ident_t*, std::int32_t)> real_end_serialized{"__kmpc_end_serialized_parallel"};
constinit Real<void(ident_t*, std::int32_t, std::int32_t)> real_push_threads{
    "__kmpc_push_num_threads"};
constinit Real<void(ident_t*, std::int32_t, std::int32_t, std::int32_t, const char*)>
    real_push_threads_strict{"__kmpc_push_num_threads_strict"};
constinit Real<void(ident_t*, std::int32_t, std::uint32_t, std::int32_t*)> real_push_threads_list{
    "__kmpc_push_num_threads_list"};
constinit Real<void(ident_t*, std::int32_t, std::uint32_t, std::int32_t*, std::int32_t,
                    const char*)>
    real_push_threads_list_strict{"__kmpc_push_num_threads_list_strict"};
constinit Real<void(ident_t*, std::int32_t, std::int32_t)> real_push_bind{"__kmpc_push_proc_bind"};
constinit Real<std::int32_t(ident_t*)> real_gtid{"__kmpc_global_thread_num"};

// A fork that is passed down: every thread must know that it is in a region of this node only.
struct PassedDown {
  Node* emulated_node;
  const ThreadFrame* outer;
  void* function;
  std::int64_t word_count;
  void* const* words;
  bool team_of_one;
  PassedTeam team;
  RegionStack stack;
};

void local_entry(std::int32_t* gtid, std::int32_t* bound_id, const PassedDown* fork) {
  enter_local_team(fork->emulated_node, fork->outer, fork->team_of_one);
  const auto number = static_cast<std::uint32_t>(*bound_id);
  fork->team.enter(number);
  fork->stack.call([&] {
    WatchedTeam::run(fork->team.watch, number, [&] {
      amasia_call_outlined(fork->function, gtid, bound_id, fork->word_count, fork->words);
    });
  });
  fork->team.leave(number);
}

// `threads`: as was asked for; 0: the next runtime decides.
void pass_down(Fork fork, ident_t* place, void* function, std::span<void* const> words,
               std::uint32_t threads = 0, const PassedTeam& team = {}) {
  const PlaceScope scope;
  const PassedDown passed{thread_context.node,
                          outer_frame(),
                          function,
                          static_cast<std::int64_t>(words.size()),
                          words.data(),
                          threads == 1,
                          team,
                          {}};
  thread_context.in_fork = true;
  on_native_stack([&] {
    const WatchedTeam watched(team.watch);
    fork(place, 1, reinterpret_cast<Microtask>(local_entry), &passed);
  });
}

// What the clauses before a fork left for it; taken once.
RegionRequest take_request(ident_t* place, void* function, std::span<void* const> words) {
  RegionRequest request;
  request.abi = Abi::kKmpc;
  request.outlined = {function, words};
  request.location = place;
  ThreadContext& context = thread_context;
  request.threads = context.pushed_threads > 0 ? context.pushed_threads : 0;
  request.proc_bind = context.pushed_proc_bind;
  if (has_own_allocator()) request.must_stay = SingleReason::kUnsupported;
  context.pushed_threads = 0;
  context.pushed_proc_bind = 0;
  return request;
}

void push_clauses(ident_t* place, std::uint32_t threads, std::int32_t proc_bind) {
  if (threads == 0 && proc_bind == 0) return;
  const std::int32_t gtid = real_gtid(place);
  if (threads != 0) real_push_threads(place, gtid, static_cast<std::int32_t>(threads));
  if (proc_bind != 0) real_push_bind(place, gtid, proc_bind);
}

// What a region copies in: the words for other nodes, and where among them the addresses of
// thread-local variables stand.
struct CopiedWords {
  std::vector<void*> words;
  std::vector<void**> places;
};

CopiedWords words_elsewhere(const Node& node, const void* function,
                            std::span<void* const> words) {
  CopiedWords copied;
  const auto shared = [&node](void* word) { return node.services().is_thread_local(word); };
  if (std::ranges::none_of(words, shared)) return copied;
  if (!clang_copies_in(function, dlsym(RTLD_DEFAULT, "__kmpc_barrier"))) return copied;
  copied.words.assign(words.begin(), words.end());
  for (void*& word : copied.words) {
    if (shared(word)) copied.places.push_back(&word);
  }
  return copied;
}

void fork_region(ident_t* place, void* function, std::span<void* const> words) {
  const auto real = reinterpret_cast<Fork>(real_fork.get());
  Node* const node = current_node();
  RegionRequest request = take_request(place, function, words);
  if (node == nullptr) {
    push_clauses(place, request.threads, request.proc_bind);
    pass_down(real, place, function, words, request.threads);
    return;
  }
  const CopiedWords copied = words_elsewhere(*node, function, words);
  request.words_elsewhere = copied.words;
  request.copied_in = copied.places;
  const RegionPlan plan = node->plan_region(request);
  request.shows_affinity = is_team_to_be_shown(
      request.proc_bind, plan.global() ? plan.shares : std::span<const NodeShare>{}, plan.threads);
  if (plan.global()) {
    node->run_region(request, plan);
    return;
  }
  push_clauses(place, plan.threads, request.proc_bind);
  pass_down(real, place, function, words, plan.threads, passed_team_of(*node, request, plan));
  node->finish_single(plan);
}

// The variadic words of a fork, read into `words`, which holds at least `count`.
constexpr std::size_t kUsualWords = 32;

}  // namespace

AMASIA_ENTRY void __kmpc_fork_call(ident_t* place, std::int32_t count, Microtask function, ...) {
  void* usual[kUsualWords];
  std::vector<void*> many;
  void** words = usual;
  if (static_cast<std::size_t>(count) > kUsualWords) {
    many.resize(static_cast<std::size_t>(count));
    words = many.data();
  }
  va_list list;
  va_start(list, function);
  for (std::int32_t i = 0; i < count; ++i) words[i] = va_arg(list, void*);
  va_end(list);
  fork_region(place, reinterpret_cast<void*>(function), {words, static_cast<std::size_t>(count)});
}

// teams on the host: a league on this node. Regions inside it are nested ones.
AMASIA_ENTRY void __kmpc_fork_teams(ident_t* place, std::int32_t count, Microtask function, ...) {
  std::vector<void*> words(static_cast<std::size_t>(count));
  va_list list;
  va_start(list, function);
  for (void*& word : words) word = va_arg(list, void*);
  va_end(list);
  pass_down(reinterpret_cast<Fork>(real_fork_teams.get()), place, reinterpret_cast<void*>(function),
            words);
}

AMASIA_ENTRY void __kmpc_serialized_parallel(ident_t* place, std::int32_t gtid) {
  const bool shows_affinity = !thread_context.in_fork && is_team_to_be_shown(0, {}, 1);
  real_serialized(place, gtid);
  // A clause before if(0) is for this region, and is used up.
  thread_context.pushed_threads = 0;
  thread_context.pushed_proc_bind = 0;
  enter_serialized();
  if (shows_affinity) show_affinity();
}

AMASIA_ENTRY void __kmpc_end_serialized_parallel(ident_t* place, std::int32_t gtid) {
  leave_serialized();
  real_end_serialized(place, gtid);
}

AMASIA_ENTRY void __kmpc_fork_call_if(ident_t* place, std::int32_t, Microtask function,
                                      std::int32_t condition, void* argument) {
  if (condition == 0) {
    // Not passed down as a whole: libomp may or may not reach our entry points from inside.
    std::int32_t gtid = real_gtid(place);
    std::int32_t bound_id = 0;
    __kmpc_serialized_parallel(place, gtid);
    amasia_call_outlined(reinterpret_cast<void*>(function), &gtid, &bound_id,
                         argument != nullptr ? 1 : 0, &argument);
    __kmpc_end_serialized_parallel(place, gtid);
    return;
  }
  // As in libomp: one argument or none, whatever `count` says.
  fork_region(place, reinterpret_cast<void*>(function),
              {&argument, argument != nullptr ? std::size_t{1} : std::size_t{0}});
}

AMASIA_ENTRY void __kmpc_push_num_threads(ident_t* place, std::int32_t gtid, std::int32_t threads) {
  if (current_node() == nullptr) return real_push_threads(place, gtid, threads);
  thread_context.pushed_threads = threads;
}

// Strict: the message and severity only matter when the threads cannot be had, which ends the job.
AMASIA_ENTRY void __kmpc_push_num_threads_strict(ident_t* place, std::int32_t gtid,
                                                 std::int32_t threads, std::int32_t severity,
                                                 const char* message) {
  if (current_node() == nullptr) {
    return real_push_threads_strict(place, gtid, threads, severity, message);
  }
  thread_context.pushed_threads = threads;
}

// A list gives the nested regions' numbers too: those stay where they are pushed down to.
AMASIA_ENTRY void __kmpc_push_num_threads_list(ident_t* place, std::int32_t gtid,
                                               std::uint32_t length, std::int32_t* threads) {
  real_push_threads_list(place, gtid, length, threads);
  if (current_node() != nullptr && length > 0) thread_context.pushed_threads = threads[0];
}

AMASIA_ENTRY void __kmpc_push_num_threads_list_strict(ident_t* place, std::int32_t gtid,
                                                      std::uint32_t length, std::int32_t* threads,
                                                      std::int32_t severity, const char* message) {
  real_push_threads_list_strict(place, gtid, length, threads, severity, message);
  if (current_node() != nullptr && length > 0) thread_context.pushed_threads = threads[0];
}

AMASIA_ENTRY void __kmpc_push_proc_bind(ident_t* place, std::int32_t gtid, std::int32_t bind) {
  if (current_node() == nullptr) return real_push_bind(place, gtid, bind);
  thread_context.pushed_proc_bind = bind;
}

}  // namespace amasia::omp::kmpc
