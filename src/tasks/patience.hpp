// SPDX-License-Identifier: Apache-2.0
// How long a worker that finds nothing searches before it sleeps. So long that who makes work now
// and then need not wake it each time, which costs that one microseconds. Where it is woken soon
// after it fell asleep, and finds nothing again, whoever makes tasks there takes them itself, and
// each sleep and each waking interrupts it: the search takes twice as long each time, up to the
// most. Pure: times are given.
#pragma once

#include <algorithm>

#include "base/base.hpp"

namespace amasia::tasks {

// Of one search, from running out of work to finding some.
class Patience {
 public:
  static constexpr Nanos kSearchNs = 100'000;
  static constexpr Nanos kMostNs = 16 * kSearchNs;
  static constexpr Nanos kBriefSleepNs = 200'000;  // waking a core may take half of that

  // How long to search from the beginning, or from the last waking.
  Nanos search_ns() const { return search_ns_; }
  // It has slept for so long, and was woken.
  void slept(Nanos duration) {
    search_ns_ = duration < kBriefSleepNs ? std::min(2 * search_ns_, kMostNs) : kSearchNs;
  }

 private:
  Nanos search_ns_ = kSearchNs;
};

}  // namespace amasia::tasks
