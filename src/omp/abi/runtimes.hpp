// SPDX-License-Identifier: Apache-2.0
// The next runtimes of this process, for the composition root.
#pragma once

#include "omp/node.hpp"

namespace amasia::omp {

// Tells the node how to reach the program's own runtimes, one for each ABI.
void set_runtimes(Node& node);

// Whether the process has loaded an OpenMP runtime by now.
bool is_openmp_program();

}  // namespace amasia::omp
