// SPDX-License-Identifier: Apache-2.0
// GOMP entry points that make tasks. They go to the node's own runtime as they are; what is noted
// is that there are any, since a barrier of a node's only thread is the next runtime's only for
// them.
#include "omp/abi/gomp.hpp"

namespace amasia::omp::gomp {
namespace {

using Copy = void (*)(void*, void*);

void note_tasks() {
  if (ThreadFrame* const frame = current_frame(); frame != nullptr) frame->may_have_tasks = true;
}

}  // namespace

// Runtimes before libgomp 5.1 take fewer arguments, and never look at the last ones.
AMASIA_ENTRY void GOMP_task(Outline function, void* data, Copy copy, long size, long alignment,
                            bool if_clause, unsigned flags, void** depend, int priority,
                            void* detach) {
  static constinit Real<void(Outline, void*, Copy, long, long, bool, unsigned, void**, int, void*)>
      real{"GOMP_task"};
  note_tasks();
  adopt_thread();
  real(function, data, copy, size, alignment, if_clause, flags, depend, priority, detach);
}

// With nowait these are tasks, too; target regions are not (gomp_fork.cpp).
AMASIA_ENTRY void GOMP_target_update_ext(int device, std::size_t maps, void** addresses,
                                         std::size_t* sizes, unsigned short* kinds, unsigned flags,
                                         void** depend) {
  static constinit Real<void(int, std::size_t, void**, std::size_t*, unsigned short*, unsigned,
                             void**)>
      real{"GOMP_target_update_ext"};
  note_tasks();
  real(device, maps, addresses, sizes, kinds, flags, depend);
}

AMASIA_ENTRY void GOMP_target_enter_exit_data(int device, std::size_t maps, void** addresses,
                                              std::size_t* sizes, unsigned short* kinds,
                                              unsigned flags, void** depend) {
  static constinit Real<void(int, std::size_t, void**, std::size_t*, unsigned short*, unsigned,
                             void**)>
      real{"GOMP_target_enter_exit_data"};
  note_tasks();
  real(device, maps, addresses, sizes, kinds, flags, depend);
}

}  // namespace amasia::omp::gomp
