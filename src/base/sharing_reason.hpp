// SPDX-License-Identifier: Apache-2.0
// Why a region runs where it does, in a sentence for people.
#pragma once

#include <string>

#include "base/statistics.hpp"

namespace amasia::base {

// Such as "on node 0 only: sharing would cost 2.1 ms, mostly stall, for 0.9 ms of work moved", or
// "shared 0.75 : 0.25: 21.3 ms a run, where node 0 alone would take 26.9 ms (predicted)". Pure.
//
// What sharing costs is what a shared run is expected to take beyond the part of the work that node
// 0 keeps; what it moves is the time that the rest of the work takes on node 0:
//   moved = alone * (1 - w_0),  cost = shared - alone * w_0,  so cost > moved iff shared > alone.
std::string sharing_reason(const RegionStatistics& region);

// The parts of the work of the nodes that had one, by node: "0.75 : 0.25"; of many their range.
std::string shares_text(const RegionStatistics& region);

}  // namespace amasia::base
