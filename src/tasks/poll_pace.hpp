// SPDX-License-Identifier: Apache-2.0
// How often modules are polled. Pure: times are given.
//
//   a worker with tasks     polls when 16 times as long has passed as the last poll took: polling
//                           costs at most a sixteenth of its time
//   one without, at first   polls without a pause: for kEagerNs after the last completion
//   later                   sleeps an eighth of the time that has passed since, at most kLongestNs:
//                           a completion is noticed late by an eighth of what it took, or by 1 ms,
//                           and a long wait costs a thousandth of a core or so
#pragma once

#include <algorithm>

#include "base/base.hpp"

namespace amasia::tasks {

class PollPace {
 public:
  static constexpr Nanos kEagerNs = 200'000;
  static constexpr Nanos kLongestNs = 1'000'000;
  static constexpr Nanos kShare = 16;

  // Something is outstanding that was not before, or a poll completed something.
  void progressed(Nanos now) {
    since_ = now;
    due_ = now;
  }
  void found_nothing(Nanos began, Nanos ended) { due_ = ended + kShare * (ended - began); }
  bool is_due(Nanos now) const { return now >= due_; }
  // How long a worker without tasks may sleep now; 0: not at all.
  Nanos rest(Nanos now) const {
    const Nanos waited = now - since_;
    return waited < kEagerNs ? 0 : std::min(waited / 8, kLongestNs);
  }

 private:
  Nanos since_ = 0;
  Nanos due_ = 0;
};

}  // namespace amasia::tasks
