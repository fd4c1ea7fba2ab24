// SPDX-License-Identifier: Apache-2.0
// When a thread that waits may yield its core, where nodes share cores: mostly that gives it to the
// node that is waited for, and costs a microsecond. But where something else runs on the core, the
// kernel may give that a whole time slice for a yield, again and again, since who yields gives up
// its own; a sleeper is woken in its turn. So after a long yield nobody yields for a while: briefly
// at first, as it may have been an exception, and twice as long where the next one is long too.
// Pure but for its state, which any thread may read and change; relaxed: hints.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/base.hpp"

namespace amasia::omp {

class YieldPause {
 public:
  // A yield that took longer went to something else.
  static constexpr Nanos kSlice = 300 * base::kMicrosecond;
  static constexpr Nanos kShortest = base::kMillisecond, kLongest = 100 * base::kMillisecond;

  bool may_yield(Nanos now) const { return now >= until_.load(std::memory_order_relaxed); }

  // A yield lasted from `before` to `after`.
  void note(Nanos before, Nanos after) {
    if (after - before <= kSlice) return;
    const Nanos last = length_.load(std::memory_order_relaxed);
    // The first yields after a pause tell whether what caused it is still there.
    const bool again = last > 0 && before - until_.load(std::memory_order_relaxed) < last;
    const Nanos length = again ? std::min(2 * last, kLongest) : kShortest;
    length_.store(length, std::memory_order_relaxed);
    until_.store(after + length, std::memory_order_relaxed);
  }

 private:
  std::atomic<Nanos> until_{0};
  std::atomic<Nanos> length_{0};  // of the last pause; 0: there was none
};

}  // namespace amasia::omp
