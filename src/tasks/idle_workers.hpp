// SPDX-License-Identifier: Apache-2.0
// Which workers sleep, and how they are woken: none while there is work that it may take.
//
//   worker i                                     who makes work
//     announce(i)                                  stores the work
//     process barrier (S1)                         wake_one(): a plain load; where a worker has
//     looks for work once more                     announced itself, claims it (S2) and wakes it
//       found:   withdraw(i), or passes on (S3)
//       nothing: sleep(i)
//     withdraw(i), looks again
//
// (S1) The barrier is executed by who goes to sleep, on all threads: either the maker of work sees
// the announcement, or the worker sees the work; and making work costs no fence. Where the kernel
// has none, wake_one() is given a fence instead.
// (S2) A claim takes the announcement away, so that no two wake-ups go to one worker.
// (S3) A worker that was claimed but has found other work owes somebody a wake-up: for each place
// where it still sees work, one of those who look there. Any other would find nothing and sleep
// again, while one who could do it sleeps.
// A wake-up may reach a worker that has long withdrawn: it then wakes once for nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.hpp"
#include "tasks/atomics.hpp"

namespace amasia::tasks {

// A set of workers, in words of 64.
using WorkerSet = std::vector<std::uint64_t>;

template <typename Atomics = RealAtomics>
class IdleWorkers {
 public:
  explicit IdleWorkers(std::uint32_t workers)
      : groups_((workers + 63) / 64),
        idle_(std::make_unique<Word[]>(groups_)),
        bells_(std::make_unique<Bell[]>(workers)) {}

  void announce(std::uint32_t worker) {
    bells_[worker].rung.store(0, std::memory_order_relaxed);
    idle_[worker / 64].fetch_or(bit_of(worker), std::memory_order_seq_cst);  // S1
  }
  // False: it was claimed meanwhile.
  bool withdraw(std::uint32_t worker) {
    const std::uint64_t before =
        idle_[worker / 64].fetch_and(~bit_of(worker), std::memory_order_seq_cst);
    return (before & bit_of(worker)) != 0;
  }
  // Until it is woken, or for a moment only if that has happened since it announced itself.
  void sleep(std::uint32_t worker) {
    while (bells_[worker].rung.load(std::memory_order_acquire) == 0) {
      Atomics::sleep_while(bells_[worker].rung, 0);
    }
  }

  // The same, for a time: it may be over without a wake-up.
  void sleep_at_most(std::uint32_t worker, Nanos most) {
    if (bells_[worker].rung.load(std::memory_order_acquire) == 0) {
      Atomics::sleep_while(bells_[worker].rung, 0, most);
    }
  }

  bool is_idle(std::uint32_t worker) const {
    return (idle_[worker / 64].load(std::memory_order_seq_cst) & bit_of(worker)) != 0;
  }
  // Whether any worker has announced itself: what who makes work looks at first.
  bool any() const {
    for (std::uint32_t group = 0; group < groups_; ++group) {
      if (idle_[group].load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }
  // Wakes one of `among` that has announced itself; false: there was none.
  bool wake_one(const WorkerSet& among) {
    for (std::uint32_t group = 0; group < groups_; ++group) {
      std::uint64_t idle = idle_[group].load(std::memory_order_relaxed) & among[group];
      while (idle != 0) {
        const std::uint32_t index = static_cast<std::uint32_t>(__builtin_ctzll(idle));
        const std::uint64_t bit = std::uint64_t{1} << index;
        std::uint64_t before = bit;
        if (!Atomics::has(Bug::kWakesWithoutClaiming)) {  // S2
          before = idle_[group].fetch_and(~bit, std::memory_order_seq_cst);
        }
        if ((before & bit) != 0) {
          ring(group * 64 + index);
          return true;
        }
        idle = before & among[group];
      }
    }
    return false;
  }
  bool wake(std::uint32_t worker) {
    if (!withdraw(worker)) return false;
    ring(worker);
    return true;
  }

 private:
  using Word = typename Atomics::template Atomic<std::uint64_t>;
  struct alignas(64) Bell {
    typename Atomics::template Atomic<std::uint32_t> rung{0};
  };
  static std::uint64_t bit_of(std::uint32_t worker) { return std::uint64_t{1} << (worker % 64); }
  void ring(std::uint32_t worker) {
    if (!Atomics::has(Bug::kWakesWithoutRinging)) {
      bells_[worker].rung.store(1, std::memory_order_seq_cst);
    }
    Atomics::wake(bells_[worker].rung);
  }

  const std::uint32_t groups_;
  const std::unique_ptr<Word[]> idle_;
  const std::unique_ptr<Bell[]> bells_;
};

}  // namespace amasia::tasks
