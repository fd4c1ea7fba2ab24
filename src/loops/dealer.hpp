// SPDX-License-Identifier: Apache-2.0
// The origin's side of a loop that is handed out at run time, whatever its schedule: answers the
// nodes' requests. Pure state; whoever holds it guards it and carries messages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "loops/pool.hpp"
#include "loops/probe_dealer.hpp"

namespace amasia::loops {

// What is carried out for a request: schedules under which numbers may fall from one range of a
// thread to the next are none for a loop that is to be monotonic.
ScheduleRequest carried_out(ScheduleRequest asked);

// What the node of `rank` begins the loop with; each computes it by itself. No allocation.
Refill first_refill(const LoopTerms& loop, std::span<const Power> powers, std::size_t rank);

class Dealer {
 public:
  // Every node has its first_refill().
  Dealer(const LoopTerms& loop, std::span<const Power> powers);

  // The node of `rank`, whose last refill said that there may be more, asks for it and tells what
  // it has executed since it told last. Appends the answers that are due, to it or to others: each
  // request is answered once, some not before another node's.
  void ask(std::size_t rank, const Report& report, std::vector<Grant>& grants);

  // The others cannot ask for now: the node of `rank`, if its request has no answer yet, gets all
  // that is left.
  void take_over(std::size_t rank, std::vector<Grant>& grants) {
    if (probes_) probe_.take_over(rank, grants);
  }

  // Iterations that no node was given yet.
  std::uint64_t remaining() const { return probes_ ? probe_.remaining() : pool_.remaining(); }
  // How many a node was given, and the speed that it counts with now; by rank.
  std::uint64_t given(std::size_t rank) const {
    return probes_ ? probe_.given(rank) : pool_.given(rank);
  }
  std::uint32_t speed(std::size_t rank) const {
    return probes_ ? probe_.speed(rank) : pool_.powers()[rank].speed;
  }
  // nullptr where the schedule does not probe.
  const ProbeDealer* probe() const { return probes_ ? &probe_ : nullptr; }

 private:
  bool probes_ = false;
  GlobalPool pool_;
  ProbeDealer probe_;
};

}  // namespace amasia::loops
