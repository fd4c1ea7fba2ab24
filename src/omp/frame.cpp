// SPDX-License-Identifier: Apache-2.0
#include "omp/frame.hpp"

namespace amasia::omp {

thread_local constinit ThreadContext thread_context;
constinit std::atomic<Node*> process_node{nullptr};
constinit std::atomic<LockService*> process_locks{nullptr};

void set_process_node(Node* node, LockService* locks) {
  process_locks.store(locks, std::memory_order_release);  // partner: current_locks
  process_node.store(node, std::memory_order_release);    // partner: current_node
}

}  // namespace amasia::omp
