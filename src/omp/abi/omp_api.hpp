// SPDX-License-Identifier: Apache-2.0
// What the files of the omp_* calls share.
#pragma once

#include <span>

#include "omp/omp.hpp"
#include "omp/real.hpp"

#define AMASIA_ENTRY extern "C" __attribute__((visibility("default")))

namespace amasia::omp {

// The ABI of the runtime that answers the calls which are passed down.
Abi abi_of_runtime();
// omp_set_affinity_format() of the next runtime.
void set_real_affinity_format(const char* format);
// omp_display_affinity(NULL) as the program has it.
void show_affinity();
// Whether OMP_DISPLAY_AFFINITY shows the team that the calling thread is about to fork, which then
// counts as shown. `shares`: its nodes; none: it stays on this node, and has so many `threads` (0:
// as the ICV says).
bool is_team_to_be_shown(std::int32_t proc_bind, std::span<const NodeShare> shares,
                         std::uint32_t threads);
// omp_get_level() as the program sees it.
std::int32_t region_level();

// Whether the program has made an allocator of its own. Its handle is an address in this node's
// runtime memory, so regions stay here from then on.
bool has_own_allocator();

}  // namespace amasia::omp
