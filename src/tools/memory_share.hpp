// SPDX-License-Identifier: Apache-2.0
// How much of a host's memory each of the nodes on it may use.
#pragma once

#include <filesystem>

#include "base/base.hpp"

namespace amasia::tools {

// What this process may use at most: the host's physical memory, or less where a control group that
// it is in, or one above, says so. `root` has proc and sys below it. 0: unknown.
Bytes host_memory(const std::filesystem::path& root = "/");

// Of one of `nodes` on a host. An eighth is left to what is no managed memory: the program's own
// libraries, the runtime's tables, page tables, messages.
constexpr Bytes memory_share(Bytes host, unsigned nodes) {
  return base::round_down(host / 8 * 7 / (nodes == 0 ? 1 : nodes), base::kMiB);
}

}  // namespace amasia::tools
