// SPDX-License-Identifier: Apache-2.0
// The ordered loops that a node's threads are in, and how far the turn of each has come, as far as
// the node knows. No lock and no wait here: Turns has those, and the explorer (turn_table_test)
// takes every order of what threads and messages do.
//
// A loop is there from the first thread that begins it, or the first message about it, until all
// the node's threads have ended it (TT1). Nobody has news of it for this node after that: each turn
// that this node's threads wait for is awaited before they leave (O2 in turns.hpp); unless they go
// home (join). Then news that nobody waits for may make it again, up to the region's end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/base.hpp"

namespace amasia::omp {

struct OrderedLoop {
  // The first iteration of the chunk whose turn it is, if that chunk is this node's, or the one
  // before was; else an earlier one. So some node knows it at any time.
  std::atomic<std::uint64_t> turn{0};
  std::uint32_t threads_here = 0;
  std::uint32_t threads_to_come = 0;
  bool begun = false;

  OrderedLoop() = default;
  // For models, which copy what they explore.
  OrderedLoop(const OrderedLoop& other) noexcept
      : turn(other.turn.load(std::memory_order_relaxed)),
        threads_here(other.threads_here),
        threads_to_come(other.threads_to_come),
        begun(other.begun) {}
  OrderedLoop& operator=(const OrderedLoop&) = delete;

  // Partner: who waits for it. Threads that pass the turn, and the handler.
  void raise(std::uint64_t to) {
    std::uint64_t now = turn.load(std::memory_order_relaxed);
    while (now < to && !turn.compare_exchange_weak(now, to, std::memory_order_release)) {
    }
  }
};

class TurnTable {
 public:
  // A thread begins its region's loop of this number; `threads` are the node's. The loop stays
  // where it is until the thread ends it.
  OrderedLoop& open(std::uint32_t region, std::uint64_t number, std::uint32_t threads);
  void close(std::uint32_t region, std::uint64_t number);
  // A message: the chunk that begins at `iteration` has its turn.
  void hear(std::uint32_t region, std::uint64_t number, std::uint64_t iteration);
  // Whether the node's threads have begun this loop, and not all have ended it.
  bool is_open(std::uint32_t region, std::uint64_t number);
  // A thread that was in this loop on another node, which knew that its turn had come to `turn`, is
  // in it here now, where it is open.
  OrderedLoop& join(std::uint32_t region, std::uint64_t number, std::uint64_t turn);

  std::size_t size() const { return loops_.size(); }
  // The loop of that number in the current region; nullptr: it is not there.
  OrderedLoop* find(std::uint64_t number) {
    const auto found = loops_.find(number);
    return found == loops_.end() ? nullptr : &found->second;
  }

 private:
  OrderedLoop& loop_of(std::uint32_t region, std::uint64_t number);

  std::uint32_t region_ = 0;  // whose loops these are
  std::map<std::uint64_t, OrderedLoop> loops_;
};

}  // namespace amasia::omp
