// SPDX-License-Identifier: Apache-2.0
// A program may have a function of its own with a name of the C library, such as `write`. Where it
// exports it, the loader binds everything in the process to it, also Amasia and the communication
// library, which the program never meant to call it. Here these are bound to the C library again.
#pragma once

#include "omp/launch/objects.hpp"

namespace amasia::omp {

// Binds calls of runtime objects, but for OpenMP runtimes (which the program's functions serve
// without Amasia, too) and the allocator's functions (which are the process's), to the C library's
// where they are bound to the executable's or yet to be bound. Before the first thread and the
// first use of the communication library; on an unmanaged stack. Microseconds, where the executable
// exports no such function.
void bind_runtime_to_c_library(const ObjectTable& objects);

}  // namespace amasia::omp
