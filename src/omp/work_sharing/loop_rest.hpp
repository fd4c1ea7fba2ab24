// SPDX-License-Identifier: Apache-2.0
// What is left, on a node whose threads go home out of a loop that is handed out at run time, for
// these threads (WorkSharing::depart, adopt). Goes in messages.
#pragma once

#include <cstdint>

#include "loops/loops.hpp"

namespace amasia::omp {

struct LoopRest {
  std::uint64_t number = 0;   // of the loop in its region
  std::uint64_t threads = 0;  // that are in it still; 0: there is nothing to take along
  loops::NodePool pool;       // has no request under way
};

}  // namespace amasia::omp
