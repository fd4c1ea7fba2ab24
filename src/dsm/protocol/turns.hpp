// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to keep contended pages, and how long a turn is. Pure.
//
// Turns are of equal length and go round all nodes by the job's clock, so nodes agree on them
// without a message. Where nodes sweep over the same pages again and again (columns dealt out of
// rows that are shorter than a page, say), collecting the pages takes longer than a turn, and every
// access is a hand-over: programs were seen to take a hundred times as long. So each node measures
// how long of its turn it waited for pages that it had had and lost, and the origin stretches the
// turns of all to a multiple of that. The nodes then do the loop one after the other, which costs
// the collecting once a turn, and no more. What is not wished for again runs out by itself.
// (The same cure as the token that Jiang and Zhang gave a thrashing virtual memory: "Token-ordered
// LRU", Performance Evaluation 60, 2005.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/base.hpp"

namespace amasia::dsm::protocol {

struct Turn {
  NodeId owner;
  Nanos begin = 0, end = 0;  // by the job's clock
  bool stretched = false;
  Nanos length() const { return end - begin; }
};

// The length of turns where nobody wishes for longer ones: as long as can be (a longer one moves
// fewer pages) while every node has its turn in less than 100 ms.
Nanos usual_turn(std::uint32_t node_count);
// The longest that turns are stretched to: a node waits for the turns of all others.
Nanos longest_turn(std::uint32_t node_count);

// Turns of `length` from `from` until `until`. As sent from the origin to all.
struct Stretch {
  Nanos from = 0, until = 0, length = 0;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};
bool is_valid(const Stretch& stretch, std::uint32_t node_count);

// What a node knows of the turns.
class TurnSchedule {
 public:
  explicit TurnSchedule(std::uint32_t node_count);
  // What was adopted before holds until stretch.from.
  void adopt(const Stretch& stretch);
  Turn at(Nanos now) const;

 private:
  std::uint32_t node_count_;
  Stretch current_, next_;
};

// Of one node: how long of its turn it waited for pages that it had had and lost.
class TurnMeter {
 public:
  // A thread has waited for a page; `turn` is the one at wait.end, and this node's. Called in the
  // order of wait.end. Pages that were given in the same turn do not count: that they went away was
  // not for the turn's length. Returns the length that this node wishes turns to have, if that is
  // known now: once a turn.
  struct Wait {
    Nanos had_at = 0;  // when it had been given this page the last time
    Nanos begin = 0, end = 0;
    // So long it did not run between the page that it had waited for before, whichever, and this.
    Nanos idle_before = 0;
  };
  std::optional<Nanos> on_wait(const Wait& wait, const Turn& turn);
  // So many pages were asked for in this node's turn, for which no thread waits. What they take, of
  // both nodes' cores and of the way between, is collecting all the same.
  std::optional<Nanos> on_collected(PageCount pages, const Turn& turn);

 private:
  std::optional<Nanos> enter(const Turn& turn);

  Nanos begin_ = -1, length_ = 0;  // of the turn that is measured
  Nanos waited_ = 0;
  Nanos counted_to_ = 0;  // waits of several threads at a time count once
};

// At the origin: makes one length of all wishes.
class TurnArbiter {
 public:
  explicit TurnArbiter(std::uint32_t node_count);
  // Returns what is to be told to all nodes, if anything is.
  std::optional<Stretch> on_wish(NodeId from, Nanos length, Nanos now);

 private:
  struct Wish {
    Nanos length = 0, at = 0;
  };
  Nanos longest_wish(Nanos now) const;

  std::uint32_t node_count_;
  std::array<Wish, base::kMaxNodes> wishes_{};
  Stretch stretch_;
};

}  // namespace amasia::dsm::protocol
