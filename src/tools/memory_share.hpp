// SPDX-License-Identifier: Apache-2.0
// How much of a host's memory each of the nodes on it may use, and whether it has run out.
#pragma once

#include <cstdint>
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

// How many processes the host's kernel has killed since it started, for lack of memory of the host
// or of a control group. 0 where nothing tells.
std::uint64_t kills_for_memory(const std::filesystem::path& root = "/");

}  // namespace amasia::tools
