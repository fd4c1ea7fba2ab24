// SPDX-License-Identifier: Apache-2.0
// Whether brief tasks of a kernel that come one by one, on a CPU that is leased, are begun at once
// or by the daemon. The way to the daemon costs; but its looking at its rings keeps a core awake
// that the driver's threads are woken on, and to wake one takes longer on some machines than the
// way (docs/decisions/devices.md). So it is tried: some tasks so, some so, then the way whose
// median is less, and after a while again. Pure; one thread.
#pragma once

#include <algorithm>
#include <array>

#include "base/base.hpp"

namespace amasia::devices {

class LeaseHabit {
 public:
  static constexpr std::size_t kTried = 31;  // tasks of each way
  static constexpr std::size_t kKept = 100;  // times as many by the better one

  // Whether the next one is begun at once.
  bool begins_at_once() const { return at_once_; }
  // From submission to end of one, with nothing beside it.
  void note(bool at_once, Nanos took) {
    if (at_once != at_once_) return;  // of before the way was changed
    if (kept_ > 0) {
      --kept_;
      return;
    }
    taken_[count_++] = took;
    if (count_ < kTried) return;
    count_ = 0;
    std::ranges::nth_element(taken_, taken_.begin() + kTried / 2);
    const Nanos median = taken_[kTried / 2];
    if (other_ == 0) {
      other_ = std::max<Nanos>(median, 1);
      at_once_ = !at_once_;
      return;
    }
    if (other_ < median) at_once_ = !at_once_;
    other_ = 0;
    kept_ = kKept * kTried;
  }

 private:
  bool at_once_ = true;
  std::size_t kept_ = 0;  // so many more without a look
  Nanos other_ = 0;       // median of the way that was tried before; 0: none was
  std::size_t count_ = 0;
  std::array<Nanos, kTried> taken_{};
};

}  // namespace amasia::devices
