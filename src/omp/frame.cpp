// SPDX-License-Identifier: Apache-2.0
#include "omp/frame.hpp"

#include <atomic>

namespace amasia::omp {

thread_local constinit ThreadContext thread_context;

namespace {
// The one process-wide pointer of the layer: the ABI's way to the composed runtime.
constinit std::atomic<Node*> process_node{nullptr};
}  // namespace

Node* current_node() {
  Node* const own = thread_context.node;
  return own != nullptr ? own : process_node.load(std::memory_order_acquire);
}

void set_process_node(Node* node) {
  process_node.store(node, std::memory_order_release);  // partner: current_node
}

}  // namespace amasia::omp
