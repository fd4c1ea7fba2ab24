// SPDX-License-Identifier: Apache-2.0
// What a region's threads may do in all of the code that they execute in it: all paths of the
// region's function are followed, and those of the functions of its object that it calls or takes
// the address of, as of regions inside of it. A call or jump to what is not known, a table of
// addresses among it, or to another object's function, but the OpenMP runtime's and those of
// Callee, may do anything.
#pragma once

#include <cstdint>

#include "omp/code/callee.hpp"

namespace amasia::omp {

// The first two are true where in doubt, the third one is not.
struct ReachedCode {
  // Who does not may go on as another thread (team/homecoming.hpp), and its values wait where they
  // are. Thread-local variables of x86-64 are at the thread pointer, in FS, or told by a function
  // of the loader. So code uses them where an operand is in FS or GS, but the stack protector's, or
  // their base is asked for. An address of one that an earlier region left in memory is not seen:
  // it may be the variable of a thread that has ended by then (OpenMP 5.2, 5.2), on any node.
  bool uses_thread_locals = true;
  // It asks for the thread's number or the team's size, but for its own loop (NumberedLoop). Who
  // does not cannot tell how many threads there are.
  bool asks_for_numbers = true;
  // It is seen to have a loop that does nothing until another thread writes what it reads
  // (code/spin_loop), or to tell the processor that it waits. Threads may need each other, at once.
  bool waits = false;
};

// `extent`: NumberedLoop's, 0: the function has none. `callee_of` is asked
// about functions in other objects than `function`'s. To be called on a native stack; a tenth of a
// millisecond and more, allocates.
ReachedCode reached_code_of(const void* function, std::uint32_t extent, CalleeOf callee_of);

}  // namespace amasia::omp
