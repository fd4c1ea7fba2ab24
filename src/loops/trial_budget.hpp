// SPDX-License-Identifier: Apache-2.0
// What finding out may cost a program, all its regions together. A region by itself cannot tell:
// what is little of an hour is too much of ten seconds, and many regions that lose a little each
// lose a lot (beyond libHetMP, ACM TOCS 2022, 3.3, where each loop probes for itself). Pure.
//
// Executions that are shared to find out lose what they take longer than alone, and what serial
// code waits for their data afterwards. That may be a tenth
// of the program's time, and a quarter of a second from the beginning, as short programs have to
// find out, too. What is gained by sharing since pays losses back.
#pragma once

#include <algorithm>

#include "base/base.hpp"

namespace amasia::loops {

class TrialBudget {
 public:
  // After an execution on several nodes; ns. `tries`: it was shared to find out, and not because
  // that had been decided. `alone`: predicted or known; 0: neither.
  void note(bool tries, Nanos took, double alone) {
    if (alone <= 0) return;
    const double lost = static_cast<double>(took) - alone;
    if (tries && lost > 0) lost_ += lost;
    if (!tries && lost < 0) lost_ = std::max(0.0, lost_ + lost);
  }
  // The origin has waited so long, outside of regions, for pages that others had of them, ns.
  void charge(Nanos stall) { lost_ += static_cast<double>(stall); }
  // What may be lost, ns, once the program has run for `time`; below 0: no region begins to find
  // out.
  double left(Nanos time) const { return kFree + kPart * static_cast<double>(time) - lost_; }

 private:
  static constexpr double kFree = 250 * base::kMillisecond;
  static constexpr double kPart = 0.1;

  double lost_ = 0;
};

}  // namespace amasia::loops
