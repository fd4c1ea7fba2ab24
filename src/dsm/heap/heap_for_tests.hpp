// SPDX-License-Identifier: Apache-2.0
// The one managed heap of a test process: node 1's of an address space of two nodes.
#pragma once

#include "dsm/address_space.hpp"
#include "dsm/heap/heap.hpp"

namespace amasia::dsm {

inline constexpr Bytes kTestLargestBlock = 12 * base::kGiB;  // the heap has 28 GiB

inline AddressSpace& space_for_tests() {
  static constinit AddressSpace space;
  if (!space.mapped()) {
    const AddressSpace::Settings settings{.self = NodeId{1},
                                          .node_count = 2,
                                          .base = 0x7c00'0000'0000,
                                          .span = 64 * base::kGiB,
                                          .globals_span = base::kGiB};
    AMASIA_CHECK(space.map(settings).ok(), "the tests' address range is free");
  }
  return space;
}

inline Heap& heap_for_tests() {
  static constinit Heap heap;
  if (!heap.started()) {
    const EarlyOutcome outcome =
        heap.start(space_for_tests().heap(NodeId{1}), {.largest_block = kTestLargestBlock});
    AMASIA_CHECK(outcome.ok(), "the heap starts");
  }
  return heap;
}

}  // namespace amasia::dsm
