// SPDX-License-Identifier: Apache-2.0
// What the files of the omp_* calls share.
#pragma once

#include "omp/omp.hpp"
#include "omp/real.hpp"

#define AMASIA_ENTRY extern "C" __attribute__((visibility("default")))

namespace amasia::omp {

// The ABI of the runtime that answers the calls which are passed down.
Abi abi_of_runtime();
// omp_set_affinity_format() of the next runtime.
void set_real_affinity_format(const char* format);
// omp_get_level() as the program sees it.
std::int32_t region_level();

// Whether the program has made an allocator of its own. Its handle is an address in this node's
// runtime memory, so regions stay here from then on.
bool has_own_allocator();

}  // namespace amasia::omp
