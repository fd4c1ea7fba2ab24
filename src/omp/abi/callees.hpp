// SPDX-License-Identifier: Apache-2.0
// Functions of other objects, told by what the loader knows of them.
#pragma once

#include "omp/code/callee.hpp"

namespace amasia::omp {

// For those who look at a region's code. Asks the loader; any thread, on a native stack.
Callee callee_of(const void* function);

}  // namespace amasia::omp
