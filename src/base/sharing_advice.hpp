// SPDX-License-Identifier: Apache-2.0
// What people may do about a region that its nodes did not end together.
#pragma once

#include <string>

#include "base/statistics.hpp"

namespace amasia::base {

// Such as "uneven: node 0 took 570.0 ms, node 1 950.0 ms; with parts by that all would take about
// 712.5 ms. --profile=FILE with these statistics begins so in the next run, schedule(runtime) finds
// it within one". "": there is nothing to gain, or the runtime has found the parts by itself. Pure.
//
// Of a region with loops that have their bounds before they begin, which has not run often enough
// to be divided by what it told: node i with a part w_i takes t_i, so that all take
// 1 / sum(w_i / t_i) where their parts are as their speeds.
std::string sharing_advice(const RegionStatistics& region);

}  // namespace amasia::base
