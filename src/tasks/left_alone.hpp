// SPDX-License-Identifier: Apache-2.0
// What a thief leaves to its victim: a task that is the only one in its deque, for a moment. Most
// often who made it is about to take it itself (a join, a wait for what it wakes), and all that the
// task touches would have to come to another core and back. Pure: times are given.
#pragma once

#include <cstdint>
#include <utility>

#include "base/base.hpp"
#include "tasks/deque.hpp"

namespace amasia::tasks {

// Of one thief and one victim.
class LeftAlone {
 public:
  // Several round trips of two tasks on one worker; little against what waking a worker takes.
  static constexpr Nanos kMomentNs = 2'000;
  // One that was made for thieves, half of a loop: shorter loops are over before it is worth it.
  static constexpr Nanos kOfferedNs = 300;

  // `lone` is what Deque::lone() says now; `offered`: made for thieves. Where there was nothing, a
  // theft would look once more, and take what has come in between.
  bool leaves(std::int64_t lone, bool offered, Nanos now) {
    if (lone == kNothing) return true;
    if (lone == kSeveral) return false;
    if (std::exchange(task_, lone) != lone) since_ = now;
    return now - since_ < (offered ? kOfferedNs : kMomentNs);
  }

 private:
  std::int64_t task_ = -1;
  Nanos since_ = 0;
};

}  // namespace amasia::tasks
