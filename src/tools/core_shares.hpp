// SPDX-License-Identifier: Apache-2.0
// How the nodes on one host share its cores.
#pragma once

#include <cstddef>
#include <vector>

namespace amasia::tools {

// The cores of share `index` of `count`: neighbouring cores, shares as even as they can be, the
// first ones larger. Where there are fewer cores than shares, each has one, in turn. Pure.
// Neighbours, because cores numbered side by side mostly share a cache or a socket.
std::vector<int> core_share(const std::vector<int>& cores, std::size_t index, std::size_t count);

}  // namespace amasia::tools
