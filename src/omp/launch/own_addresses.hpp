// SPDX-License-Identifier: Apache-2.0
// Whether a thread that is to go on as another one (homecoming.hpp) keeps an address of what the C
// library has for each thread: its errno, say. Compilers take such an address to be the same
// throughout a function, and may keep it in a register or on the stack. So these are looked at
// where the thread stands: a word that is such an address keeps the thread where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace amasia::omp {

// Whether one of the words is an address of the calling thread's own. Any context.
bool has_own_address(std::span<const std::uintptr_t> words) noexcept;

// The same of the stack of the calling thread, from its innermost frame up to `end`, and of the
// registers that a call keeps.
bool keeps_own_address(const void* end) noexcept;

}  // namespace amasia::omp
