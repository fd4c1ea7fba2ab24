// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/kmpc_parts.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "omp/team/team.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp::kmpc {
namespace {

using namespace std::string_view_literals;

struct Named {
  std::string_view begin;  // of the name
  Callee callee;
};

// The first that fits counts.
constexpr std::array kNamed = {
    Named{"__kmpc_for_static_init_", Callee::kBounds},
    Named{"__kmpc_for_static_fini", Callee::kLoopEnd},
    Named{"__kmpc_reduce_nowait", Callee::kReduces},
    Named{"__kmpc_end_reduce_nowait", Callee::kReduced},
    Named{"__kmpc_global_thread_num", Callee::kHarmless},
    Named{"__kmpc_critical", Callee::kIteration},
    Named{"__kmpc_end_critical", Callee::kIteration},
    Named{"__kmpc_atomic_", Callee::kIteration},
    Named{"__kmpc_flush", Callee::kIteration},
    Named{"omp_get_wtime", Callee::kIteration},
    Named{"omp_set_lock", Callee::kIteration},
    Named{"omp_unset_lock", Callee::kIteration},
    Named{"omp_test_lock", Callee::kIteration},
    Named{"__kmpc_", Callee::kConstruct},
    Named{"kmpc_", Callee::kConstruct},
    Named{"omp_", Callee::kConstruct},
    Named{"__stack_chk_fail", Callee::kEnds},
    Named{"abort", Callee::kEnds},
    Named{"__assert_fail", Callee::kEnds},
    Named{"_ZSt9terminatev", Callee::kEnds},
    Named{"__cxa_throw", Callee::kEnds},
    Named{"_Unwind_Resume", Callee::kEnds},
};

// These are chosen by the processor, and have no names.
bool fills(const void* function) {
  static const std::array<const void*, 3> functions = {dlsym(RTLD_DEFAULT, "memset"),
                                                       dlsym(RTLD_DEFAULT, "memcpy"),
                                                       dlsym(RTLD_DEFAULT, "memmove")};
  return std::ranges::find(functions, function) != functions.end();
}

// What follows runs on the node where the thread is by then, so nothing that was read of its frame
// may be kept from one call to the next: these are not to be inlined.
[[gnu::noinline]] bool take_part() {
  ThreadFrame& frame = *current_frame();
  frame.parts.inside = true;
  if (next_iterations(frame, frame.parts.part)) return true;
  frame.parts = {};
  return false;
}

[[gnu::noinline]] void enter_again() {
  const ThreadFrame& frame = *current_frame();
  const Outlined& outlined = frame.team->outlined();
  // The words are copied before the function is entered.
  amasia_call_outlined(outlined.function, frame.numbers[0], frame.numbers[1],
                       static_cast<std::int64_t>(outlined.words.size()), outlined.words.data());
}

[[gnu::noinline]] void execute_rest() {
  while (take_part()) enter_again();
}

}  // namespace

Callee callee_of(const void* function) {
  if (fills(function)) return Callee::kFills;
  Dl_info info{};
  if (dladdr(function, &info) != 0 && info.dli_saddr == function && info.dli_sname != nullptr) {
    const std::string_view name = info.dli_sname;
    const auto fits = [name](const Named& named) { return name.starts_with(named.begin); };
    if (const auto* const found = std::ranges::find_if(kNamed, fits); found != kNamed.end()) {
      return found->callee;
    }
  }
  return Callee::kOther;
}

loops::Iterations part_of_loop(ThreadFrame& frame, const loops::Space& space,
                               const LoopSite& site) {
  ThreadParts& parts = frame.parts;
  if (parts.inside) return parts.part;
  frame.team->node().work_sharing()->begin_static(frame, space, site);
  parts.open = next_iterations(frame, parts.part);
  return parts.open ? parts.part : loops::Iterations{};
}

void end_of_part() {
  const ThreadFrame& frame = *current_frame();
  if (frame.parts.open && !frame.parts.inside && frame.team->reentry() == Reentry::kPlain) {
    execute_rest();
  }
}

bool is_part_of_reduction(void** copies, void (*combine)(void* to_list, void* from_list)) {
  ThreadParts& parts = current_frame()->parts;
  if (!parts.open) return false;
  if (parts.inside) {
    combine(parts.copies, copies);
    return true;
  }
  parts.copies = copies;
  execute_rest();
  return false;
}

}  // namespace amasia::omp::kmpc
