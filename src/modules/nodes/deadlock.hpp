// SPDX-License-Identifier: Apache-2.0
// When a whole job has come to rest though its origin waits: a deadlock across nodes. Pure state
// machines, for nodes that tell and the origin that judges. Mattern, "Algorithms for distributed
// termination detection", Distributed Computing 2 (1987), section 4: the four-counter method.
//
// Words. A node is *stalled* when all its workers sleep, nothing lies there to be run, and no
// operation of another module is outstanding: only a message can make it do anything. Messages that
// can are *counted*: tasks and answers. Those of seeking cannot: a stalled node has no open task.
//
//   wave 1   each node tells the origin its counts when it is stalled, once for the same counts
//   wave 2   when those say that nothing is under way, and the origin is stalled, it asks all
//   verdict  all answer that they are stalled, and have sent, in all, what was received in wave 1
//
// Why that is no false alarm. A node that is asked in wave 2 is stalled, and so will be until it
// receives a message. Of those that are received by a node after it was asked there would be a
// first: sent before its sender was asked, as a stalled one sends nothing. So wave 2 counts it as
// sent, and wave 1 not as received. Counts only grow; what was received in wave 1 had been sent
// before wave 2: the sums would differ. So there is none: all are stalled, together, for ever.
//
// Invariants:
//  (D1) `sent` counts a message before it is sent, `received` after all that it leads to is there.
//  (D2) A node answers between messages: on the thread that receives them.
//  (D3) Whenever a node comes to be stalled, or is and its counts change, it looks (Teller::look).
//  (D4) Who answers "not stalled" tells anew when it is, whatever its counts: its round is lost.
//  (D5) Messages overtake each other: what a node said last counts, not what came last.
//  (D6) A deadlock is reported once: after that something has to happen before it is looked for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/base.hpp"

namespace amasia::nodes {

struct MessageCounts {
  std::uint64_t sent = 0, received = 0;
  bool operator==(const MessageCounts&) const = default;
};

// What a node says of itself: its counts while it is stalled, nullopt while it is not.
struct StallNews {
  std::uint64_t serial = 0;  // what has the larger one was said later
  std::optional<MessageCounts> counts;
};

// Of a node other than the origin. `here` is how it is now: its counts, or nullopt.
class StallTeller {
 public:
  // What is to be told, if anything.
  std::optional<StallNews> look(const std::optional<MessageCounts>& here) {
    if (!here || here == told_) return std::nullopt;
    return answer(here);
  }
  // The origin has asked.
  StallNews answer(const std::optional<MessageCounts>& here) {
    told_ = here;
    return {++serial_, here};
  }
  const std::optional<MessageCounts>& told() const { return told_; }

 private:
  std::optional<MessageCounts> told_;
  std::uint64_t serial_ = 0;
};

enum class Judgement : std::uint8_t {
  kNone,
  kAsk,       // all other nodes, with round()
  kDeadlock,
  kRefused,   // the sender breaks the protocol
};

// Of the origin. `here`: its own counts while it is stalled, nullopt while it is not.
class StallJudge {
 public:
  explicit StallJudge(std::uint32_t node_count) : told_(node_count), answered_(node_count) {}

  // `anew`: its workers have been awake since it was looked at last; else a message came.
  Judgement on_stalled(const std::optional<MessageCounts>& here, bool anew) {
    if (anew) is_reported_ = false;  // D6
    return judge(here);
  }
  Judgement on_told(NodeId from, const StallNews& news, const std::optional<MessageCounts>& here);
  Judgement on_answer(NodeId from, std::uint64_t round, const StallNews& news,
                      const std::optional<MessageCounts>& here);
  std::uint64_t round() const { return round_; }
  bool is_asking() const { return missing_ != 0; }

  // Everything that decides what it does next, for explorations.
  std::vector<std::uint64_t> fingerprint() const;

 private:
  bool is_peer(NodeId node) const {
    return node != base::kOrigin && node.value < told_.size();
  }
  void note(NodeId from, const StallNews& news);
  Judgement judge(const std::optional<MessageCounts>& here);

  std::vector<StallNews> told_;  // by node; wave 1. The origin's own is `here`
  std::uint64_t round_ = 0;
  bool is_reported_ = false;
  // While a round is under way:
  std::vector<bool> answered_;
  std::uint32_t missing_ = 0;          // answers
  std::uint64_t received_before_ = 0;  // in all, in wave 1
  std::uint64_t sent_since_ = 0;       // by those that have answered
  bool all_stalled_ = false;
};

}  // namespace amasia::nodes
