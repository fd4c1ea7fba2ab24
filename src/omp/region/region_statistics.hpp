// SPDX-License-Identifier: Apache-2.0
// A region's record as `--stats` reports it.
#pragma once

#include "base/base.hpp"
#include "omp/region/region.hpp"
#include "omp/work_sharing/loop_outcomes.hpp"

namespace amasia::omp {

// Pure. Allocates. Without its loops.
base::RegionStatistics statistics_of(const RegionRecord& record);

// Of a loop of `record`: what is met of it, and what came of it where it was handed out at run
// time; nullptr: that is not known. Pure. Allocates. Without its site.
base::LoopStatistics statistics_of(const RegionRecord& record, const LoopBook::Entry& met,
                                   const LoopOutcome* outcome);

}  // namespace amasia::omp
