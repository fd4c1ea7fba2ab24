// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/kmpc_parts.hpp"

#include "omp/team/team.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp::kmpc {
namespace {

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

loops::Iterations part_of_loop(ThreadFrame& frame, const loops::Space& space,
                               const LoopSite& site) {
  ThreadParts& parts = frame.parts;
  if (parts.inside) return parts.part;
  AMASIA_CHECK(!parts.open, "a region whose function is entered again has one loop");
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
