// SPDX-License-Identifier: Apache-2.0
// A device's times as times of CLOCK_MONOTONIC. Drivers count from where they like, and clocks
// drift apart; what is known is that the end of a work was noticed at or after the moment that the
// device gives for it. So the smallest difference seen lately is nearest to the truth.
// Pure; whoever holds it guards it.
#pragma once

#include <algorithm>
#include <limits>

#include "base/base.hpp"

namespace amasia::devices {

class DeviceClock {
 public:
  // What was seen longer ago than one to two windows no longer counts.
  static constexpr Nanos kWindow = base::kSecond;

  // The device says `device` for something that was noticed at `host`.
  void note(Nanos device, Nanos host) {
    if (!known() || host - began_ >= kWindow) {
      previous_ = known() && host - began_ < 2 * kWindow ? newest_ : kUnknown;
      newest_ = kUnknown;
      began_ = host;
    }
    newest_ = std::min(newest_, host - device);
  }
  bool known() const { return newest_ != kUnknown; }
  // 0, which stands for a time that is not known, stays 0.
  Nanos to_host(Nanos device) const {
    return device == 0 || !known() ? 0 : device + std::min(newest_, previous_);
  }

 private:
  static constexpr Nanos kUnknown = std::numeric_limits<Nanos>::max();
  Nanos newest_ = kUnknown, previous_ = kUnknown;  // host minus device
  Nanos began_ = 0;                                // the window of newest_
};

}  // namespace amasia::devices
