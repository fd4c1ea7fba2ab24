// SPDX-License-Identifier: Apache-2.0
// Whether private copies of a reduction may be combined from a copy of their bytes at another
// address. Numbers may. Objects that own memory may not: a combiner that moves their content out
// would leave the owner as it was, and what their memory points back to (the header of a std::map)
// is at the old address.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/base.hpp"

namespace amasia::omp {

// A copy's size is not known, only that it ends before the next one, the list and the stack do. An
// object is not searched for addresses further than that, and no further than this: what lies
// beyond is mostly of the function around it, and its addresses do not matter.
constexpr Bytes kSearchedForAddresses = 256;

// `list`: the addresses of the private copies, which lie anywhere; those from `stack_low` to below
// `stack_top` are looked at, on the stack of the calling thread, which may read all of it. True if
// none holds the address of a block of the heap, or one within itself. May be wrong in saying no.
// Pure; a few ns for numbers.
bool are_movable(std::span<void* const> list, std::uintptr_t stack_low, std::uintptr_t stack_top,
                 const std::function<bool(std::uintptr_t)>& is_heap);

}  // namespace amasia::omp
