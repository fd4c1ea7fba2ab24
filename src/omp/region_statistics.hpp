// SPDX-License-Identifier: Apache-2.0
// A region's record as `--stats` reports it.
#pragma once

#include "base/base.hpp"
#include "omp/region.hpp"

namespace amasia::omp {

// Pure. Allocates.
base::RegionStatistics statistics_of(const RegionRecord& record);

}  // namespace amasia::omp
