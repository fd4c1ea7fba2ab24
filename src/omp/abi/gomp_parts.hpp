// SPDX-License-Identifier: Apache-2.0
// Regions of gcc's whose static loop is handed out in parts: they are executed as if the team had
// more threads (code/numbered_loop.hpp), and each thread of the team takes the parts of several.
#pragma once

#include "omp/abi/gomp.hpp"

namespace amasia::omp::gomp {

// In place of the region's function, with its data, on the thread's managed stack.
void execute_parts(void* data);

}  // namespace amasia::omp::gomp
