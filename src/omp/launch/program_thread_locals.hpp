// SPDX-License-Identifier: Apache-2.0
// Which thread-local variables the program has, and whether they can follow its threads.
#pragma once

#include "omp/launch/objects.hpp"
#include "omp/thread_locals/thread_values.hpp"

namespace amasia::omp {

// Of the program objects that were loaded at start, without the languages' own libraries: what
// those keep means nothing from one region to the next.
//
// They cannot move where an object
//  - has variables with destructors (the C++ library has noted which thread is to run them), or has
//    the OpenMP runtime keep them (flang), or
//  - does not use OpenMP: what such a library keeps for each thread may be the thread's identity;
// or where they are larger than kMaxThreadValues. Then they are watched, if they are small and the
// runtime keeps none. On the main thread, some microseconds.
ThreadLocals thread_locals_of(const ObjectTable& objects);

// Whether an address of one of them may be anywhere, in memory or a register: code of the program's
// asks where its thread's variables are (code/thread_pointer.hpp). Any thread; some 0.1 ms for each
// MiB of code.
bool may_take_addresses(const ObjectTable& objects);

}  // namespace amasia::omp
