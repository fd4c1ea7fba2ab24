// SPDX-License-Identifier: Apache-2.0
// What a function that a region calls is to those who look at its code.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace amasia::omp {

enum class Callee : std::uint8_t {
  kOther,         // of the program, or of a library
  kHarmless,      // changes nothing, as __kmpc_global_thread_num
  kFills,         // memset
  kCopies,        // memcpy, memmove
  kOfReals,       // the same as kOther, and has no arguments but floating-point numbers, as exp
  kBounds,        // __kmpc_for_static_init_…
  kLoopEnd,       // __kmpc_for_static_fini
  kReduces,       // __kmpc_reduce_nowait
  kReduced,       // __kmpc_end_reduce_nowait
  kThreadNumber,  // omp_get_thread_num
  kTeamSize,      // omp_get_num_threads
  kIteration,     // of the OpenMP runtime, and allowed in iterations, as locks are
  kConstruct,     // any other of the OpenMP runtime
  kEnds,          // does not return, as abort
};

using CalleeOf = Callee (*)(const void* function);

// Of a function by its name, which libraries other than the program's own object export. An OpenMP
// runtime's are told by how they begin, others by the whole name.
Callee callee_named(std::string_view name);
// The names of those of kOfReals.
std::span<const char* const> names_of_reals();

}  // namespace amasia::omp
