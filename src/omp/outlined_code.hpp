// SPDX-License-Identifier: Apache-2.0
// What the code of an outlined function shows about its region, which no argument tells: whether it
// begins by copying in. An address of a thread-local variable among its words can also be a pointer
// that the program made, about which nothing is known.
#pragma once

namespace amasia::omp {

// Compiled by gcc: it asks for its thread's number, compares that with 0 and comes to a barrier:
// all threads but the first copy in. By clang: it, or what it calls, looks where a thread-local
// variable of its own thread is and comes to a barrier: all threads copy in whose variable is at
// another address. False when in doubt. x86-64; outside of signal handlers.
bool gcc_copies_in(const void* function);
bool clang_copies_in(const void* function);

}  // namespace amasia::omp
