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

// The same of one of its loops: "shared 0.75 : 0.25, as an iteration takes 2.0 us on node 0, 6.0 us
// on node 1". Pure.
std::string loop_reason(const RegionStatistics& region, const LoopStatistics& loop);
// "loop at a.c:12 main, dynamic, carried out by hetprobe-i".
std::string loop_heading(const LoopStatistics& loop);
// "3 runs of 1000 iterations".
std::string runs_text(const LoopStatistics& loop);

// The parts of the work of the nodes that had one, by node: "0.75 : 0.25"; of many their range.
std::string shares_text(const RegionStatistics& region);

}  // namespace amasia::base
