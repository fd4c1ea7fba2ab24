// SPDX-License-Identifier: Apache-2.0
// Whether a value of OMP_NUM_THREADS counts.
#pragma once

#include "omp/region/region.hpp"

namespace amasia::omp {

// Whether the runtime of that ABI takes a number of threads from this value (OMP_NUM_THREADS; null:
// not set). A value that it ignores with a warning counts as not set, as without us: for libgomp,
// numbers above 0, separated by commas; libomp makes 1 of 0, and takes no signs.
bool sets_threads(const char* value, Abi abi);

// The same for the process's environment. Any thread.
bool environment_sets_threads(Abi abi);

}  // namespace amasia::omp
