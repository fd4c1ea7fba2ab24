// SPDX-License-Identifier: Apache-2.0
// The program's end. The loader's own would run the destructors of UCX and of this library while
// threads of the runtime still use them, and before those of libraries whose data other nodes may
// hold; so a node runs the program's and leaves with _exit.
#pragma once

#include "omp/launch/objects.hpp"

namespace amasia::omp {

// Runs the termination functions (DT_FINI_ARRAY backwards, then DT_FINI) of all program objects and
// of the OpenMP runtimes, those opened late included, in the order of loading, which has dependents
// before what they depend on. Once, on the thread that ends the program. `with_runtimes` false: not
// those of the OpenMP runtimes. On a thread that is none of theirs they free what the threads of a
// region under way still use.
void run_program_destructors(bool with_runtimes);

}  // namespace amasia::omp
