// SPDX-License-Identifier: Apache-2.0
// What a program may ask of the runtime (include/amasia.h): it looks these functions up, and does
// not find them where it runs by itself.
#include <string>

#include "amasia.h"
#include "omp/launch/node_process.hpp"
#include "omp/launch/process.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT int amasia_thread_state(struct amasia_thread_state_t* state) {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  if (node == nullptr) return 0;
  const ThreadCounters counters = node->thread_counters();
  // `state` may lie in managed memory, which is touched last and outside of all sections.
  state->node = process.space.self().value;
  state->nodes = node->node().node_count();
  state->faults = counters.faults;
  state->stall_ns = counters.stall_ns;
  return 1;
}

AMASIA_EXPORT const char* amasia_identity(void) {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  if (node == nullptr || process.space.self() != amasia::base::kOrigin) return nullptr;
  static const std::string text = amasia::machine::to_json(node->identity());
  return text.c_str();
}
