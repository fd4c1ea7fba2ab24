// SPDX-License-Identifier: Apache-2.0
// How many tasks of a finish scope are outstanding, counted in shards: each participant (a strand
// of execution that creates or runs tasks of the scope) keeps what it added and took off in a
// number of its own, without atomics, and settles it when it turns to something else.
//
//   word = participants * kParticipant + settled
//   outstanding = settled + sum of what participants have not settled
//
//   enter       a participant, before it runs or creates a task   word + kParticipant
//   leave(net)  when it has nothing more to do here               word - kParticipant + net (F1)
//   add(net)    one that is told of the outcome only              word + net
//   is_quiet    the only participant, of itself                   nothing
//
// While somebody takes part the word is not zero; when nobody does, nothing is unsettled: so the
// word is zero if and only if no task is outstanding and nobody can create one. Who makes it zero
// ends the scope, and nobody touches it afterwards: a task that is not yet run is counted.
// (F1) In one step: between two the word could be zero too early, or twice.
#pragma once

#include "base/base.hpp"
#include "tasks/atomics.hpp"

namespace amasia::tasks {

template <typename Atomics = RealAtomics>
class FinishCount {
 public:
  // Begins with one participant: who opens the scope.
  FinishCount() : word_(kParticipant) {}

  void enter() { word_.fetch_add(kParticipant, std::memory_order_relaxed); }

  // True: it is over, and the caller is to say so. Release: what tasks did. Acquire: all of them.
  [[nodiscard]] bool leave(std::int64_t net) {
    if (Atomics::has(Bug::kLeavesInTwoSteps)) {
      word_.fetch_add(-kParticipant, std::memory_order_acq_rel);
      return word_.fetch_add(net, std::memory_order_acq_rel) + net == 0;
    }
    return add(net - kParticipant);  // F1
  }
  [[nodiscard]] bool add(std::int64_t net) {
    return word_.fetch_add(net, std::memory_order_acq_rel) + net == 0;
  }

  // Whether nothing is outstanding and nobody but the caller takes part, who has `net` unsettled.
  bool is_quiet(std::int64_t net) const {
    const std::int64_t word = word_.load(std::memory_order_acquire);  // partner: leave()
    if (Atomics::has(Bug::kOwnerIgnoresOthers)) return (word + net) % kParticipant == 0;
    return word + net == kParticipant;
  }

 private:
  static constexpr std::int64_t kParticipant = std::int64_t{1} << 40;
  typename Atomics::template Atomic<std::int64_t> word_;
};

}  // namespace amasia::tasks
