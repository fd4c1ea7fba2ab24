// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/movable_threads.hpp"

#include <algorithm>

#include "omp/launch/dynamic_section.hpp"

namespace amasia::omp {
namespace {

// OpenMP constructs whose calls are ours wherever they are in a region of all nodes. Not among
// them: tasks, cancellation, teams, serialized regions, allocators, reductions in tasks.
constexpr std::string_view kMovable[] = {
    "__kmpc_barrier",
    "__kmpc_copyprivate",
    "__kmpc_copyprivate_light",
    "__kmpc_critical",
    "__kmpc_critical_with_hint",
    "__kmpc_end_barrier_master",
    "__kmpc_end_critical",
    "__kmpc_end_masked",
    "__kmpc_end_master",
    "__kmpc_end_ordered",
    "__kmpc_end_reduce",
    "__kmpc_end_reduce_nowait",
    "__kmpc_end_sections",
    "__kmpc_end_single",
    "__kmpc_flush",
    "__kmpc_for_static_fini",
    "__kmpc_fork_call",
    "__kmpc_global_thread_num",
    "__kmpc_masked",
    "__kmpc_master",
    "__kmpc_next_section",
    "__kmpc_ordered",
    "__kmpc_push_num_threads",
    "__kmpc_push_proc_bind",
    "__kmpc_reduce",
    "__kmpc_reduce_nowait",
    "__kmpc_sections_init",
    "__kmpc_single",
    "GOMP_barrier",
    "GOMP_parallel",
};
constexpr std::string_view kMovableFamilies[] = {
    "__kmpc_dispatch_",
    "__kmpc_doacross_",
    "__kmpc_for_static_init_",
    "GOMP_atomic_",
    "GOMP_critical_",
    "GOMP_doacross_",
    "GOMP_loop_",
    "GOMP_ordered_",
    "GOMP_parallel_loop_",
    "GOMP_parallel_sections",
    "GOMP_sections_",
    "GOMP_single_",
};

// Of the families, what has to do with reductions in tasks; any other such name tells it.
constexpr std::string_view kWithTasks[] = {"GOMP_loop_start", "GOMP_loop_ull_start",
                                           "GOMP_loop_doacross_start"};

// Of the C and C++ libraries: what is the thread's own, and is taken to be the same in each call.
constexpr std::string_view kOfThread[] = {
    "__cxa_get_globals",   "__tls_get_addr",            "pthread_self", "thrd_current",
    "pthread_getspecific", "omp_set_default_allocator",
};
// The same, where that is an address that can be told from others.
constexpr std::string_view kOwnAddresses[] = {"__ctype_b_loc", "__ctype_tolower_loc",
                                              "__ctype_toupper_loc", "__errno_location",
                                              "__h_errno_location"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool may_be_called_by_any_thread(std::string_view name) {
  if (is_among(kMovable, name)) return true;
  if (name.find("cancel") != name.npos || name.find("reduction") != name.npos) return false;
  return !is_among(kWithTasks, name) &&
         std::ranges::any_of(kMovableFamilies, [name](std::string_view family) {
           return name.starts_with(family);
         });
}

}  // namespace

bool lets_threads_move(std::span<const std::string_view> imports) {
  const auto is_construct = [](std::string_view name) {
    return name.starts_with("__kmpc_") || name.starts_with("GOMP_");
  };
  bool has_constructs = false, has_own = false;
  for (const std::string_view name : imports) {
    if (is_among(kOfThread, name)) has_own = true;
    if (!is_construct(name)) continue;
    if (!may_be_called_by_any_thread(name)) return false;
    has_constructs = true;
  }
  return !(has_constructs && has_own);
}

bool may_keep_own_addresses(std::span<const std::string_view> imports) {
  return std::ranges::any_of(imports,
                             [](std::string_view name) { return is_among(kOwnAddresses, name); });
}

MovableThreads movable_threads(const ObjectTable& objects) {
  MovableThreads found;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].role != ObjectRole::kProgram) continue;
    const auto imports = imported_names(objects[i]);
    if (!lets_threads_move(imports)) found.may_move = false;
    if (may_keep_own_addresses(imports)) found.may_keep_own_addresses = true;
  }
  return found;
}

}  // namespace amasia::omp
