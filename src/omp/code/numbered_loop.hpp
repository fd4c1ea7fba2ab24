// SPDX-License-Identifier: Apache-2.0
// Whether a region of gcc's may be executed as if its team had more threads than it has. gcc
// computes the bounds of a static loop inline, from the thread's number and the team's size:
//
//   share = iterations / threads;  rest = iterations % threads;
//   if (number < rest) { share = share + 1;  rest = 0; }
//   begin = share * number + rest;  end = begin + share;
//
// Asked again with other answers to these two calls it does another share of the loop, as one more
// thread would, so a thread can stand in for several, one after the other. It may, where the
// function makes nothing else of the two answers. All paths of its code are followed, and with them
// where the numbers, and what is computed of them on the way to `begin`, are held. Nor may there be
// another construct of OpenMP, as a barrier, which each of them would have to come to. What such a
// thread does beside its iterations is not seen from here: see idle_thread.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "omp/code/callee.hpp"

namespace amasia::omp {

// The one static loop of a region.
struct NumberedLoop {
  // Calls for the number and the size that return to at most so many bytes behind the function's
  // begin are the loop's. Others come from what iterations call, which may well have to know which
  // thread there is.
  std::uint32_t extent = 0;
};

// x86-64, the GOMP ABI. Threads, cost and `callee_of` as of reentry_of(). nullopt when in doubt.
std::optional<NumberedLoop> numbered_loop_of(const void* function, CalleeOf callee_of);

}  // namespace amasia::omp
