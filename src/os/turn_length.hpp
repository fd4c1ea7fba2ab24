// SPDX-License-Identifier: Apache-2.0
// Whether threads that share a core should have short turns on it. They cost each thread its
// caches, a twentieth of NPB-CPP's SP of class A, and gain only where threads wait without giving
// the core away, which cannot be seen: so both are tried for a while, and what gets further is
// kept. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::os {

class TurnLength {
 public:
  // `progress` counts what threads have passed together, and may wrap; now in ns.
  TurnLength(Nanos now, std::uint32_t progress) : since_(now), from_(progress) {}

  bool is_short() const { return stage_ == Stage::kTryShort || (stage_ == Stage::kKeep && keep_); }
  // How long that is so before `step` is due, ns.
  Nanos lasts() const { return stage_ == Stage::kKeep ? kKept * window_ : window_; }

  void step(Nanos now, std::uint32_t progress) {
    const auto passed = static_cast<double>(progress - from_);
    const double rate = passed / static_cast<double>(std::max<Nanos>(now - since_, 1));
    since_ = now;
    from_ = progress;
    switch (stage_) {
      case Stage::kTryLong:
        long_rate_ = rate;
        passed_ = passed;
        stage_ = Stage::kTryShort;
        break;
      case Stage::kTryShort:
        decide(rate, passed_ + passed);
        break;
      case Stage::kKeep:
        stage_ = Stage::kTryLong;
        break;
    }
  }

 private:
  enum class Stage : std::uint8_t { kTryLong, kTryShort, kKeep };

  // Who passes less than this in both windows says nothing: longer ones are tried, and who passes
  // nothing for seconds has short turns, as a twentieth lost is little beside a wait of
  // milliseconds for each word from another thread.
  static constexpr double kFew = 8;
  // Phases of a program differ by less than threads gain that wait for each other.
  static constexpr double kGain = 1.5;
  static constexpr Nanos kWindow = 50 * base::kMillisecond, kLongest = 16 * kWindow;
  static constexpr int kKept = 40;

  void decide(double short_rate, double passed) {
    const bool tells = passed >= kFew;
    if (!tells && window_ < kLongest) {
      window_ *= 2;
      stage_ = Stage::kTryLong;
      return;
    }
    keep_ = !tells || short_rate > kGain * long_rate_;
    stage_ = Stage::kKeep;
  }

  Stage stage_ = Stage::kTryLong;
  bool keep_ = false;
  Nanos window_ = kWindow, since_;
  std::uint32_t from_;
  double long_rate_ = 0, passed_ = 0;
};

}  // namespace amasia::os
