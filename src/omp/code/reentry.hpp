// SPDX-License-Identifier: Apache-2.0
// Whether a thread may enter a region's function again, once it has returned, for further
// iterations of the loop in it: `parallel for` as clang compiles it asks for the bounds of a static
// loop once, when it begins, so that the thread could not be given more, or less, afterwards.
//
// It may, where entering it once more changes nothing but what these iterations do. That is shown
// by its code, all paths of which are followed:
//   before the bounds are asked for    nothing is written but its own stack; what it calls is
//                                      looked at in the same way
//   between that and the loop's end    whatever the iterations do; no other construct of OpenMP
//   after the loop's end               as before it; it may reduce, once, and does so on all paths
// So a region that counts its threads, or has a second loop, a barrier, lastprivate variables or
// destructors is none. Iterations that ask for their thread's number are left alone, too: they may
// show how iterations are divided.
#pragma once

#include <cstdint>

#include "omp/code/callee.hpp"

namespace amasia::omp {

enum class Reentry : std::uint8_t {
  kNever,
  kPlain,     // the loop's end is all
  kReduces,   // after the loop's end it reduces by __kmpc_reduce_nowait
  kNumbered,  // by another number of the thread and another size of the team (numbered_loop.hpp)
  kAsks,      // no, but a loop left to the runtime comes back for more without
};

// `callee_of` is asked about functions in other objects than `function`'s. x86-64, kmpc's ABI. To
// be called on a native stack; a tenth of a millisecond and more, allocates. kNever when in doubt.
Reentry reentry_of(const void* function, CalleeOf callee_of);

}  // namespace amasia::omp
