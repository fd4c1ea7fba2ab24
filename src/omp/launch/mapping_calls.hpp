// SPDX-License-Identifier: Apache-2.0
// The program's calls of mmap, munmap and mremap, which are noted (own_mappings.hpp). They are led
// to us by the slots through which the executable makes them, and libraries of the program's that
// have OpenMP regions; what other libraries map is their own affair. Not by a symbol of ours: UCX
// and Open MPI replace the code of whatever has these names, to hear of memory that goes away.
#pragma once

#include "omp/launch/objects.hpp"

namespace amasia::omp {

// Before the program's main, once, on an unmanaged stack; what cannot be led here is logged.
void lead_mapping_calls_here(const ObjectTable& objects);

}  // namespace amasia::omp
