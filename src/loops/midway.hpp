// SPDX-License-Identifier: Apache-2.0
// Whether a region that is shared to find out is to be brought home in the middle of a loop, where
// it comes to no barrier (homeward.hpp has those that do): a loop that is run once has no next
// execution in which it could be left to one node (beyond libHetMP, ACM TOCS 2022, 3.4).
//
// Nodes are asked now and then how long they have computed, from which follows how long the origin
// alone would have taken. What is lost against that counts as far as threads have waited for pages
// that their node had and others have taken, or for system calls to be carried to the origin and
// back: data that come to stay are the price of sharing, which the next execution does not pay.
// Pure; one thread, allocates nothing.
#pragma once

#include <algorithm>

#include "base/base.hpp"

namespace amasia::loops {

class Midway {
 public:
  // `allowance`: what tries may lose, ns.
  explicit Midway(double allowance) : allowance_(std::max(allowance, 0.0)) {}

  // Of the time since the loop was first looked at: how much has passed, how much of it the origin
  // would have taken for what all have done, and what a thread of the node that did so most has
  // waited for pages that were lost and for calls' carriage; ns. They only grow.
  struct Look {
    double elapsed = 0, alone = 0, to_and_fro = 0;
  };
  // Whether to go home now.
  bool hear(const Look& look) {
    const double passed = look.elapsed - last_.elapsed;
    const double lost = passed - (look.alone - last_.alone);
    const double again = std::clamp(look.to_and_fro - last_.to_and_fro, 0.0, passed);
    last_ = look;
    if (passed <= 0) return false;
    lost_again_ = std::max(0.0, lost_again_ + std::min(lost, again));
    // Of what is yet to come as much would be lost; to move threads and their data costs, too.
    const bool still = lost > kStillLost * passed && again > kStillLost * passed;
    return still && lost_again_ > std::max(kPart * allowance_, kLeast);
  }
  // By the last look, ns: all of it.
  double lost() const { return std::max(0.0, last_.elapsed - last_.alone); }

 private:
  static constexpr double kStillLost = 0.2;
  // What is lost to and fro is lost for good, so it does not have to be tried for as long as tries
  // may: only beginnings are let pass.
  static constexpr double kPart = 0.25;
  static constexpr double kLeast = 10 * base::kMillisecond;

  double allowance_;
  Look last_;
  double lost_again_ = 0;
};

}  // namespace amasia::loops
