// SPDX-License-Identifier: Apache-2.0
// How often modules are polled. Pure: times are given.
//
//   a worker with tasks     polls when 16 times as long has passed as the last poll took: polling
//                           costs at most a sixteenth of its time
//   one without, at first   polls without a pause: for kEagerNs after the last completion; it gives
//                           the core to others in between only after kSpinNs, since whoever does
//                           that on a busy machine gets it back much later
//   later                   sleeps an eighth of the time that has passed since, at most kLongestNs:
//                           a completion is noticed late by an eighth of what it took, or by 1 ms,
//                           and a long wait costs a hundredth of a core or less. It polls twice
//                           in between, of which the first finds the caches cold: others may want
//                           the core, such as a kernel on a device of the host's cores
//
// A poll that completes nothing, but takes much longer than the quickest, has done something in the
// library, such as copying a part of a message: it counts as a completion. Not the first one after
// a sleep, which finds the caches cold.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::tasks {

class PollPace {
 public:
  static constexpr Nanos kSpinNs = 30'000;
  static constexpr Nanos kEagerNs = 200'000;
  static constexpr Nanos kLongestNs = 1'000'000;
  static constexpr Nanos kShare = 16;
  static constexpr Nanos kWorkNs = 1'000;

  // Something is outstanding that was not before: as good as a completion, at the time at which
  // that is looked at. Many operations are begun between two polls, and clocks cost.
  void began_more() { more_ = true; }
  // A poll completed something.
  void progressed(Nanos now) {
    more_ = false;
    since_ = now;
    due_ = now;
  }
  void found_nothing(Nanos began, Nanos ended) {
    if (more_) progressed(began);
    const Nanos took = ended - began;
    due_ = ended + kShare * took;
    fastest_ = std::min(fastest_, took);
    if (took > std::max(kWorkNs, 8 * fastest_) && !after_sleep_) since_ = ended;
    after_sleep_ = false;
  }
  bool is_due(Nanos now) const { return more_ || now >= due_; }
  // How long a worker without tasks may sleep now; 0: not at all, but others may have the core.
  static constexpr Nanos kKeepOn = -1;  // or not even that
  Nanos rest(Nanos now) {
    if (more_) progressed(now);
    const Nanos waited = now - since_;
    sleeps_ = waited >= kEagerNs;
    if (waited < kSpinNs) return kKeepOn;
    if (waited < kEagerNs) return 0;
    after_sleep_ = true;
    return std::min(waited / 8, kLongestNs);
  }
  // How often it polls before it asks for its rest: clocks cost.
  static constexpr std::uint32_t kPolls = 24, kPollsAfterSleep = 2;
  std::uint32_t polls_before_rest() const { return sleeps_ ? kPollsAfterSleep : kPolls; }

 private:
  bool more_ = false;
  Nanos since_ = 0;
  Nanos due_ = 0;
  Nanos fastest_ = kLongestNs;
  bool after_sleep_ = false;
  bool sleeps_ = false;
};

}  // namespace amasia::tasks
