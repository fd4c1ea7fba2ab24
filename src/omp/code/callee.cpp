// SPDX-License-Identifier: Apache-2.0
#include "omp/code/callee.hpp"

#include <algorithm>
#include <array>

namespace amasia::omp {
namespace {

struct Named {
  std::string_view name;
  Callee callee;
};

constexpr std::array kWholeNames = {
    Named{"omp_get_thread_num", Callee::kThreadNumber},
    Named{"omp_get_num_threads", Callee::kTeamSize},
    Named{"__stack_chk_fail", Callee::kEnds},
    Named{"abort", Callee::kEnds},
    Named{"__assert_fail", Callee::kEnds},
    Named{"_ZSt9terminatev", Callee::kEnds},
    Named{"__cxa_throw", Callee::kEnds},
    Named{"_Unwind_Resume", Callee::kEnds},
};

// The first that fits counts.
constexpr std::array kBegins = {
    Named{"__kmpc_for_static_init_", Callee::kBounds},
    Named{"__kmpc_for_static_fini", Callee::kLoopEnd},
    Named{"__kmpc_reduce_nowait", Callee::kReduces},
    Named{"__kmpc_end_reduce_nowait", Callee::kReduced},
    Named{"__kmpc_global_thread_num", Callee::kHarmless},
    Named{"__kmpc_critical", Callee::kIteration},
    Named{"__kmpc_end_critical", Callee::kIteration},
    Named{"__kmpc_atomic_", Callee::kIteration},
    Named{"__kmpc_flush", Callee::kIteration},
    Named{"GOMP_critical_", Callee::kIteration},
    Named{"GOMP_atomic_", Callee::kIteration},
    Named{"omp_get_wtime", Callee::kIteration},
    Named{"omp_set_lock", Callee::kIteration},
    Named{"omp_unset_lock", Callee::kIteration},
    Named{"omp_test_lock", Callee::kIteration},
    Named{"__kmpc_", Callee::kConstruct},
    Named{"kmpc_", Callee::kConstruct},
    Named{"GOMP_", Callee::kConstruct},
    Named{"omp_", Callee::kConstruct},
};

// Of math.h.
constexpr std::array kNamesOfReals = {
    "acos",  "acosf", "asin",  "asinf", "atan",  "atanf", "atan2", "atan2f", "cbrt",  "cbrtf",
    "ceil",  "ceilf", "cos",   "cosf",  "cosh",  "coshf", "erf",   "erff",   "erfc",  "erfcf",
    "exp",   "expf",  "exp2",  "exp2f", "expm1", "fabs",  "fabsf", "floor",  "floorf", "fma",
    "fmaf",  "fmod",  "fmodf", "hypot", "log",   "logf",  "log10", "log10f", "log1p", "log2",
    "log2f", "pow",   "powf",  "rint",  "rintf", "round", "sin",   "sinf",   "sinh",  "sinhf",
    "sqrt",  "sqrtf", "tan",   "tanf",  "tanh",  "tanhf", "trunc", "truncf"};

}  // namespace

Callee callee_named(std::string_view name) {
  const auto is_it = [name](const Named& named) { return name == named.name; };
  if (const auto* const found = std::ranges::find_if(kWholeNames, is_it);
      found != kWholeNames.end()) {
    return found->callee;
  }
  const auto fits = [name](const Named& named) { return name.starts_with(named.name); };
  if (const auto* const found = std::ranges::find_if(kBegins, fits); found != kBegins.end()) {
    return found->callee;
  }
  return Callee::kOther;
}

std::span<const char* const> names_of_reals() { return kNamesOfReals; }

}  // namespace amasia::omp
