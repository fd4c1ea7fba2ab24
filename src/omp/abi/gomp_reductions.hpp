// SPDX-License-Identifier: Apache-2.0
// Task reductions and team memory of gcc's constructs in a global team.
//
// libgomp keeps an array of private copies per reduction, one block a thread of *its* team; the
// compiled code combines as many blocks as omp_get_num_threads() says, which is the global number.
// So the arrays are made here, with a block for each global thread, and put in the place of those
// that libgomp made; GOMP_task_reduction_remap, which counts with local thread numbers, is mended.
#pragma once

#include "omp/abi/gomp.hpp"

namespace amasia::omp::gomp {

// Begins what a work-sharing construct asks for beside its iterations. `reductions`: its list of
// task reductions, or nullptr. `memory`: on entry the size, on return the address, of zeroed memory
// that the whole team shares; or nullptr. A barrier, if either is there: memory is agreed upon.
void begin_shared_state(ThreadFrame& frame, std::uintptr_t* reductions, void** memory);

}  // namespace amasia::omp::gomp
