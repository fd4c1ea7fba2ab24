// SPDX-License-Identifier: Apache-2.0
// What a move of shares has cost, by what executions took until data had followed it: not only the
// pages that change hands, but also what is read ahead of them, and taken back. With more nodes
// there are more seams, and it takes longer. Pure.
#pragma once

#include <algorithm>

#include "base/base.hpp"

namespace amasia::loops {

class MoveCost {
 public:
  // Shares have just been moved: `part` of the work is another node's; executions took `usual` ns.
  void move(double part, double usual) {
    part_ = part;
    usual_ = usual;
    lost_ = 0;
    follow_ = true;
  }
  // After an execution of `elapsed` ns; `follow`: data still follow the last move.
  void note(double elapsed, bool follow) {
    if (!follow_) return;
    if (follow) {
      lost_ += std::max(0.0, elapsed - usual_);
      return;
    }
    forget();
    known_ = {part_, lost_};
  }
  // What it took since the last move has other reasons, too.
  void forget() { follow_ = false; }
  // Of a move of that part, in ns, by the last one that was seen to its end; 0: there was none.
  // Little is not much less than more, since each seam costs something wherever it goes.
  double expected(double part) const {
    if (known_.lost <= 0) return 0;
    return known_.lost * std::clamp(part / known_.part, kLeast, kMost);
  }

 private:
  static constexpr double kLeast = 0.5, kMost = 2;

  struct Known {
    double part = 0, lost = 0;
  };
  Known known_;
  double part_ = 0, usual_ = 0, lost_ = 0;
  bool follow_ = false;
};

}  // namespace amasia::loops
