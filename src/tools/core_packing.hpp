// SPDX-License-Identifier: Apache-2.0
// Which core each emulated node runs on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace amasia::tools {

struct CorePacking {
  std::vector<std::size_t> core_of;  // by node, an index below the number of cores
  std::vector<double> shares;        // by node, after scaling
  double scale = 1;                  // what all shares were multiplied by to fit; at most 1

  // The cores' loads after scaling.
  std::vector<double> loads(std::size_t cores) const;
};

// Puts nodes that want these shares of a core (each above 0 and at most 1) on `cores` cores so that
// the fullest one is as empty as it can be; where it would still hold more than 1, all shares
// shrink by the same factor, so that nodes keep their speeds relative to each other. Cores are
// taken in the order of the nodes that come first on them. Exact for the numbers of nodes that
// people emulate; beyond that (the search has a bound) as good as longest-first is. Pure.
CorePacking pack_shares(std::span<const double> shares, std::size_t cores);

}  // namespace amasia::tools
