// SPDX-License-Identifier: Apache-2.0
// What a region's code says of how its static loop may be handed out.
#pragma once

#include <cstdint>

#include "omp/code/numbered_loop.hpp"
#include "omp/code/reentry.hpp"

namespace amasia::omp {

struct RegionCode {
  Reentry reentry = Reentry::kNever;
  NumberedLoop numbered;  // where it is kNumbered
};

// How one execution of a region whose code is kNumbered is divided: each thread takes parts of a
// larger team that there might be, or that the program has asked for, and executes the function for
// each of its threads.
struct NumberedParts {
  std::uint32_t threads = 0;     // of that team; 0: it is not handed out so
  std::uint32_t extent = 0;      // NumberedLoop's
  bool stay = false;             // each thread has its share by the powers, and no more
  std::uint64_t iterations = 0;  // of the loop; known on the origin
  bool reduce = false;           // IdleThread::reduces; the same

  bool are_asked_for_at(const void* function, const void* return_address) const {
    return reinterpret_cast<std::uintptr_t>(return_address) -
               reinterpret_cast<std::uintptr_t>(function) <=
           extent;
  }
};

}  // namespace amasia::omp
