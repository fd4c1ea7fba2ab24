// SPDX-License-Identifier: Apache-2.0
// Whether a region that is shared to find out is to be brought home on the way: a program whose
// time loop is inside of one region runs it once, so there is no next execution to be decided
// (beyond libHetMP, ACM TOCS 2022, 3.4, which decides about loops).
//
// Now and then all nodes tell how long they have computed, from which follows how long the origin
// alone would have taken so far. What is lost against that may be the price for data that come to
// stay, as in a region's first execution. So what passes until a barrier that the region has not
// come to before is not counted. For the rest there is a limit, and it has to be lost still, in the
// time since the last look. Pure; one thread, allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/base.hpp"

namespace amasia::loops {

class Homeward {
 public:
  Homeward() = default;  // it is not
  // `allowance`: what may be lost, ns.
  explicit Homeward(double allowance) : allowance_(std::max(allowance, 0.0)), next_(kFirst) {}

  // The region has come to the barrier at `place`, in the program's code.
  void come_to(const void* place) { new_places_ |= is_first_visit(place); }

  // Whether nodes are to be asked, `elapsed` after the region's begin.
  bool is_due(Nanos elapsed) const { return !asked_ && elapsed >= next_; }
  // They are.
  void ask(Nanos elapsed) {
    asked_ = true;
    asked_at_ = elapsed;
    asked_new_ = new_places_;
    new_places_ = false;
  }
  bool asked() const { return asked_; }
  // What they have done when they were asked would have taken `alone` ns on the origin. Whether to
  // go home.
  bool hear(double alone) {
    const auto passed = static_cast<double>(asked_at_ - seen_);
    const double lost = passed - (alone - alone_);
    if (!asked_new_) lost_again_ = std::max(0.0, lost_again_ + lost);
    seen_ = asked_at_;
    alone_ = alone;
    asked_ = false;
    next_ = seen_ + std::max(kFirst, seen_ / kLooks);
    return !asked_new_ && lost_again_ > allowance_ && lost > kStillLost * passed;
  }
  // By the last look, ns: of all the time, cold data too.
  double lost() const { return std::max(0.0, static_cast<double>(seen_) - alone_); }

 private:
  static constexpr Nanos kFirst = 20 * base::kMillisecond;
  static constexpr Nanos kLooks = 8;
  static constexpr double kStillLost = 0.1;
  static constexpr std::size_t kPlaces = 256;  // a power of two

  // A program with more places than there is room for has been to the others.
  bool is_first_visit(const void* place) {
    constexpr std::size_t kSteps = 8;
    const auto key = reinterpret_cast<std::uintptr_t>(place);
    // Addresses in code lie close together: they are to be spread.
    const auto first = static_cast<std::size_t>((key * 0x9e37'79b9'7f4a'7c15ULL) >> 32) % kPlaces;
    for (std::size_t step = 0; step < kSteps; ++step) {
      const void*& slot = places_[(first + step) % kPlaces];
      if (slot == place) return false;
      if (slot == nullptr) {
        slot = place;
        return true;
      }
    }
    return false;
  }

  double allowance_ = std::numeric_limits<double>::infinity();
  Nanos next_ = std::numeric_limits<Nanos>::max();
  std::array<const void*, kPlaces> places_{};
  bool new_places_ = false;  // since nodes were asked
  bool asked_ = false, asked_new_ = false;
  Nanos asked_at_ = 0, seen_ = 0;
  double alone_ = 0, lost_again_ = 0;
};

}  // namespace amasia::loops
