// SPDX-License-Identifier: Apache-2.0
// What a thread does in a region of gcc's that gets no iterations of its static loop: found out by
// stepping through the function (stepped_thread.hpp), with a number and a team's size that leave
// it none, in the program's memory as it is, and without changing that. If even then nothing is
// changed, as many threads as one likes may execute the region: what it adds to a sum is 0, and it
// counts no threads and prints nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "omp/code/callee.hpp"

namespace amasia::omp {

struct IdleThread {
  std::uint64_t iterations = 0;  // of the loop, which all threads together have
  bool reduces = false;          // it writes what others write, too, though nothing new
};

// `function` is one with a NumberedLoop, and would be called with `data` now. Reads what such a
// thread would, in the calling thread's name; to be called on a native stack; some microseconds to
// a fraction of a millisecond, allocates. nullopt: it changes something, or that is not known; or
// there are 2^31 iterations and more.
std::optional<IdleThread> idle_thread_of(const void* function, const void* data,
                                         CalleeOf callee_of);

}  // namespace amasia::omp
