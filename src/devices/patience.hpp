// SPDX-License-Identifier: Apache-2.0
// How long a thread that waits looks for what it waits for before it sleeps. Pure.
//
// Between two looks it lets others have its core, since what it waits for may be done by one of
// them. Where somebody else wants the core for longer, as on a loaded machine, that costs
// milliseconds; a thread that sleeps is put back at once when it is woken. So a thread that got its
// core back late looks no more for a while, and for a longer one each time that it was late again.
#pragma once

#include <algorithm>

#include "base/base.hpp"

namespace amasia::devices {

using base::Nanos;

// Of one thread. Times are CLOCK_MONOTONIC.
class Patience {
 public:
  static constexpr Nanos kLate = 200 * base::kMicrosecond;
  static constexpr Nanos kLeastRest = base::kMillisecond, kMostRest = 64 * base::kMillisecond;
  // So often in time in a row: what was there has gone.
  static constexpr int kForgets = 100;

  // Whether to look again at `now` rather than sleep, until `until` at the latest.
  bool lasts(Nanos now, Nanos until) const { return now < until && now >= rests_until_; }
  // The core was let go at `before`, and was given back at `after`.
  void note(Nanos before, Nanos after) {
    if (after - before < kLate) {
      if (++in_time_ >= kForgets) rest_ = kLeastRest;
      return;
    }
    in_time_ = 0;
    rests_until_ = after + rest_;
    rest_ = std::min(2 * rest_, kMostRest);
  }

 private:
  Nanos rests_until_ = 0, rest_ = kLeastRest;
  int in_time_ = 0;
};

}  // namespace amasia::devices
