// SPDX-License-Identifier: Apache-2.0
// Memory of one NUMA node, without libnuma.
#pragma once

#include "base/base.hpp"

namespace amasia::os {

// Zeroed pages of their own that come from that node as long as it has some (MPOL_PREFERRED, so
// that a full node is no failure). nullptr: no memory or addresses are left. A kernel that knows no
// such node, or none at all, gives pages of any.
void* allocate_on_numa_node(Bytes bytes, int node) noexcept;
void free_on_numa_node(void* block, Bytes bytes) noexcept;

}  // namespace amasia::os
