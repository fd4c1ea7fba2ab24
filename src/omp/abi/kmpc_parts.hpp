// SPDX-License-Identifier: Apache-2.0
// Static loops of clang's that are handed out in parts (code/reentry.hpp): the thread has one
// part when the loop's bounds are asked for, and enters the region's function again for each other
// one, from inside of the call that ends the loop.
//
//   the thread is       bounds are asked for      the loop's end        a reduction begins
//   in no loop          the first part, if there  –                     the team's
//                       is one: open
//   open                bug                       the rest, if it does  the rest; then the team's
//                                                 not reduce; closed    closed
//   open, and inside    the part that it came     –                     added to the copies that
//                       for                                             the first entry has
//
// While it is inside, it may go on as a thread of another node (homecoming.hpp).
#pragma once

#include "omp/abi/kmpc.hpp"
#include "omp/work_sharing/loop_book.hpp"

namespace amasia::omp::kmpc {

// Whether static loops of the region that the thread is in are handed out so; and whether this one
// is. One with a few iterations for each thread is not: they are dear, or wait for one another.
inline bool takes_parts(const ThreadFrame& frame) {
  const Reentry reentry = frame.team->reentry();
  return reentry == Reentry::kPlain || reentry == Reentry::kReduces;
}
inline bool is_worth_parts(const ThreadFrame& frame, const loops::Space& space) {
  constexpr std::uint64_t kLeastForEach = 16;
  return space.count / kLeastForEach >= frame.team->size();
}
inline bool takes_parts(const ThreadFrame& frame, const loops::Space& space) {
  return takes_parts(frame) && is_worth_parts(frame, space);
}
// Of a dispatched loop that libomp takes for a static one, as nobody has said what it is: the
// region's first.
inline bool asks_for_parts(const ThreadFrame& frame, const loops::Space& space) {
  return frame.team->reentry() == Reentry::kAsks && frame.loops_met == 0 &&
         is_worth_parts(frame, space);
}

// The thread asks for its bounds: the part that it is to execute; empty: none. May wait for a
// message.
loops::Iterations part_of_loop(ThreadFrame& frame, const loops::Space& space,
                               const LoopSite& site);

// It has come to the loop's end.
void end_of_part();

// It has come to a reduction of its copies, whose addresses are in `copies`. True: they have been
// added to those of an entry before, and that is all. False: they are to be reduced now.
bool is_part_of_reduction(void** copies, void (*combine)(void* to_list, void* from_list));

}  // namespace amasia::omp::kmpc
