// SPDX-License-Identifier: Apache-2.0
// What this machine is made of, as hwloc sees it.
#pragma once

#include "base/base.hpp"
#include "machine/machine.hpp"

namespace amasia::tools {

// Cores that this process may run on, their caches and NUMA nodes, and NVIDIA GPUs in the order of
// their PCI addresses. Takes some milliseconds.
Result<machine::Topology> local_topology();

}  // namespace amasia::tools
