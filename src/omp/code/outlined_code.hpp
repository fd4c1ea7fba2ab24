// SPDX-License-Identifier: Apache-2.0
// What the code of an outlined function shows about its region, which no argument tells: whether it
// begins by copying in. An address of a thread-local variable among its words can also be a pointer
// that the program made, about which nothing is known.
#pragma once

#include <cstddef>

namespace amasia::omp {

// Compiled by gcc: it asks for its thread's number, compares that with 0 and comes to a barrier:
// all threads but the first copy in. By clang: it, or what it calls, looks where a thread-local
// variable of its own thread is and comes to a barrier: all threads copy in whose variable is at
// another address. False when in doubt. x86-64; outside of signal handlers.
// The others are the addresses of the entry points that the program's calls lead to.
bool gcc_copies_in(const void* function, const void* thread_number, const void* barrier);
bool clang_copies_in(const void* function, const void* barrier);

// Whether gcc's code may read the word at `offset` of its data: false when no instruction has that
// displacement. What stands behind the data on the caller's stack is told apart so.
bool may_use_word(const void* function, std::size_t offset);

}  // namespace amasia::omp
