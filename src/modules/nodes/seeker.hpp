// SPDX-License-Identifier: Apache-2.0
// How a node that has nothing to do gets tasks from one that has, as a pure state machine: first it
// asks nodes at random, then it leaves a *lifeline* with a few and is silent until one of them has
// something. Saraswat et al., "Lifeline-based global load balancing", PPoPP 2011, sections 2 and 3:
// so idle nodes send nothing and use no processor. docs/protocols/nodes.md has the table.
//
//   thief     content | asking (one request is out) | waiting (lifelines are out)
//   victim    whose lifelines lie here
//
// Messages of one pair may overtake each other: answers are sent by several threads.
// Invariants:
//  (S1) A node has at most one request out, and at most one lifeline with each node.
//  (S2) Where a lifeline lies and a worker is busy no task is kept that could be given: surplus()
//       is asked whenever a flexible task comes to be, and whenever a worker begins one.
//  (S3) A node that waits sends nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/base.hpp"

namespace amasia::nodes {

// What a thief sends, and what it is answered: kNothing, or tasks.
enum class SeekKind : std::uint8_t { kRequest, kLifeline, kNothing };
struct SeekMessage {
  SeekKind kind;
  NodeId to;
};
// At most a lifeline for each power of two below the number of nodes.
class SeekMessages {
 public:
  void push(SeekMessage message) {
    AMASIA_CHECK(count_ < all_.size(), "a step sends at most a lifeline to each of a few");
    all_[count_++] = message;
  }
  const SeekMessage* begin() const { return all_.data(); }
  const SeekMessage* end() const { return all_.data() + count_; }
  std::size_t size() const { return count_; }

 private:
  std::array<SeekMessage, 8> all_{};
  std::size_t count_ = 0;
};

// What a step asks for; `refused` says in what way the sender breaks the protocol, or nothing.
struct SeekStep {
  SeekMessages send = {};
  bool give = false;  // tasks go to whom asked
  const char* refused = nullptr;
};

// How many of `open` flexible tasks go to a node that asks: half, and the last one only if no
// worker here is about to look for it.
inline std::size_t tasks_to_give(std::size_t open, bool some_worker_sleeps) {
  return some_worker_sleeps ? open / 2 : (open + 1) / 2;
}

class Seeker {
 public:
  enum class State : std::uint8_t { kContent, kAsking, kWaiting };

  Seeker(NodeId self, std::uint32_t node_count);

  // Thief. `random` is any number; it decides who is asked.
  SeekStep on_idle(std::uint64_t random);
  SeekStep on_nothing(NodeId from, std::uint64_t random);
  SeekStep on_tasks(NodeId from, bool for_lifeline);
  // Victim. `can_give`: there are tasks to spare. To a request there is always an answer: tasks, or
  // kNothing. To a lifeline tasks, now or later.
  SeekStep on_request(NodeId from, bool can_give);
  SeekStep on_lifeline(NodeId from, bool can_give);
  // There is a task to spare: who gets it, if anybody waits for one.
  std::optional<NodeId> surplus();
  bool has_lifelines() const { return lifelines_here_ != 0; }
  bool has_lifeline_of(NodeId node) const { return (lifelines_here_ >> node.value & 1) != 0; }

  State state() const { return state_; }
  // Everything that decides what it does next, for explorations.
  std::array<std::uint64_t, 4> fingerprint() const;

 private:
  void ask(SeekStep& step, std::uint64_t random);
  bool is_peer(NodeId node) const { return node != self_ && node.value < node_count_; }

  NodeId self_;
  std::uint32_t node_count_;
  State state_ = State::kContent;
  NodeId asked_;                      // while asking
  std::uint32_t tries_left_ = 0;      // while asking
  std::uint64_t lifelines_out_ = 0;   // a bit for each node that has one of ours
  std::uint64_t lifelines_here_ = 0;  // a bit for each node whose lies here
  NodeId served_;                     // last of those, so that all come to their turn
};

}  // namespace amasia::nodes
