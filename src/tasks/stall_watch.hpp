// SPDX-License-Identifier: Apache-2.0
// Whether all workers sleep for good: none runs, nothing lies where one would look, and no
// operation of a module is outstanding that could still make something ready. Idle workers
// (idle_workers.hpp) are looked at one after the other; this makes one moment of it.
//
//   worker i                          whose operation ends        who asks, any thread
//     announce(i)                       stores the work             reads wakes_ (W1)
//     looks for work once more          operation_ended() (W2)      have all announced it?
//       nothing: asks, then sleeps        the last, and all         is an operation there? W3
//     woke() (W1)                         sleep: has a worker       does work lie anywhere?
//     withdraw(i), looks again            look again                has wakes_ changed? (W1)
//
// (W1) A worker counts its waking before it takes anything. If the count is the same at the end all
// who were seen asleep were so together, claimed perhaps, but without having taken what they were
// claimed for: that is still to be seen where it lies.
// (W2) Who went to sleep last may have seen the operation, and said nothing: then who ends it sees
// that all sleep. Both are sequentially consistent: one sees the other.
// (W3) The work of an operation is stored before it counts as ended, and looked for after that.
#pragma once

#include <cstdint>

#include "tasks/atomics.hpp"

namespace amasia::tasks {

template <typename Atomics = RealAtomics>
class StallWatch {
 public:
  // A worker, between its sleep and its withdrawal.
  void woke() {
    if (!Atomics::has(Bug::kWakesUncounted)) wakes_.fetch_add(1, std::memory_order_seq_cst);
  }

  void operation_began() { outstanding_.fetch_add(1, std::memory_order_relaxed); }
  // Any thread, after what the operation makes ready can be taken. True: if all sleep now one has
  // to be woken, to look and to ask again.
  [[nodiscard]] bool operation_ended() {
    const bool last = outstanding_.fetch_add(-1, std::memory_order_seq_cst) == 1;  // W2
    return last && !Atomics::has(Bug::kLastOperationIsSilent);
  }

  // `all_sleep`: all have announced themselves. `work_lies_there`: anything a worker could take.
  template <typename AllSleep, typename WorkLiesThere>
  bool is_stalled(AllSleep all_sleep, WorkLiesThere work_lies_there) const {
    const std::uint64_t wakes = wakes_.load(std::memory_order_seq_cst);
    if (!all_sleep()) return false;
    if (Atomics::has(Bug::kLooksBeforeOperations) && work_lies_there()) return false;
    if (outstanding_.load(std::memory_order_seq_cst) != 0) return false;  // W3
    if (!Atomics::has(Bug::kLooksBeforeOperations) && work_lies_there()) return false;
    return wakes_.load(std::memory_order_seq_cst) == wakes;  // W1
  }

 private:
  typename Atomics::template Atomic<std::uint64_t> wakes_{0};
  typename Atomics::template Atomic<std::int64_t> outstanding_{0};
};

}  // namespace amasia::tasks
