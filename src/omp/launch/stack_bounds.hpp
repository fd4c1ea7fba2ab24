// SPDX-License-Identifier: Apache-2.0
// Where the program is told that its stacks lie: by pthread_getattr_np, by the loader's
// __libc_stack_end, and by the list of mappings. Interpreters (R) measure how deep they are by it,
// collectors of garbage scan from there.
#pragma once

#include "dsm/dsm.hpp"

namespace amasia::omp {

// The calling thread is about to execute main on this stack, guard pages not included. Once.
void tell_main_stack(dsm::AddressRange stack) noexcept;

// Empty before that, and on nodes that do not execute main. Any thread.
dsm::AddressRange main_stack() noexcept;

}  // namespace amasia::omp
