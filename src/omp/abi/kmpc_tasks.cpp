// SPDX-License-Identifier: Apache-2.0
// kmpc entry points that make tasks, which go to the node's own runtime as they are.
#include "omp/abi/kmpc.hpp"

namespace amasia::omp::kmpc {
namespace {

using Entry = std::int32_t (*)(std::int32_t, void*);

constinit Real<void*(ident_t*, std::int32_t, std::int32_t, std::size_t, std::size_t, Entry)>
    real_alloc{"__kmpc_omp_task_alloc"};

}  // namespace

// A task has the settings of where it was made, and with it ends what it changes of them: a thread
// outside of regions is given the job's number of threads here, not in it.
AMASIA_ENTRY void* __kmpc_omp_task_alloc(ident_t* place, std::int32_t gtid, std::int32_t flags,
                                         std::size_t size, std::size_t shared, Entry entry) {
  if (Node* const node = current_node(); node != nullptr) node->adopt_thread(Abi::kKmpc);
  return real_alloc(place, gtid, flags, size, shared, entry);
}

}  // namespace amasia::omp::kmpc
