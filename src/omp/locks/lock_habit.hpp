// SPDX-License-Identifier: Apache-2.0
// Whether a lock's token is worth keeping for a node's own threads, although another node waits for
// it: whether one of them will be back sooner than the token could go and come. Judged by how soon
// they came back before. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::omp {

// Of one lock on one node.
class LockHabit {
 public:
  // Coming back pays within so many times of what it takes to fetch the token: it would have to go
  // and to come, and the pages that the lock guards with it.
  static constexpr Nanos kPays = 2;
  static constexpr int kKnown = 2;      // timely returns, in a row and more or less, that tell
  static constexpr int kMost = 8;
  static constexpr int kFruitful = 8;   // returns to a token that lingered make good for the wait
  static constexpr int kMostVain = 6;

  // A thread asks for the lock. `lingers`: whose token was kept for it. `fetch`: what a token takes
  // to come from another node; 0: not known.
  void note_acquire(Nanos now, Nanos fetch, bool lingers) {
    if (released_at_ == kNever || fetch == 0) return;
    const bool soon = now - released_at_ < kPays * fetch;
    timely_ = soon ? std::min(timely_ + 1, kMost) : std::min(timely_, kMost / 2) - 1;
    timely_ = std::max(timely_, -(kFruitful << kMostVain));
    fruitful_ = std::min(fruitful_ + (lingers ? 1 : 0), kFruitful);
  }
  void note_release(Nanos now) { released_at_ = now; }

  // Others have waited for a token that nobody here needed any more. After a few timely returns
  // that is the end of a loop. Else it is to be avoided: twice as long each time.
  void note_nudge(Nanos now, Nanos fetch) {
    if (fetch == 0 || now - released_at_ < kPays * fetch) return;
    if (fruitful_ == kFruitful) {
      vain_ = timely_ = 0;
    } else {
      timely_ = -(kFruitful << vain_);
      vain_ = std::min(vain_ + 1, kMostVain);
    }
    fruitful_ = 0;
  }

  // `paused`: when a thread of the node last began to wait for other nodes. Whoever had the lock
  // before then does not come back now.
  bool expects_thread(Nanos now, Nanos fetch, Nanos paused) const {
    return timely_ >= kKnown && released_at_ > paused && now - released_at_ < kPays * fetch;
  }
  // Whether anything would be lost with it.
  bool knows() const { return timely_ != 0 || vain_ != 0; }

 private:
  static constexpr Nanos kNever = -1;
  Nanos released_at_ = kNever;
  int timely_ = 0;    // below 0: so many timely returns are not enough yet
  int fruitful_ = 0;  // since the last time in vain
  int vain_ = 0;      // in a row
};

}  // namespace amasia::omp
