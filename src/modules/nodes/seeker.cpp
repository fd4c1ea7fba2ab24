// SPDX-License-Identifier: Apache-2.0
#include "modules/nodes/seeker.hpp"

#include <algorithm>

namespace amasia::nodes {
namespace {

// Of random victims, before the lifelines. A second try finds half of what the first has missed
// where half of the nodes have work; more only cost messages where nobody has.
constexpr std::uint32_t kTries = 2;

std::uint64_t bit_of(NodeId node) { return std::uint64_t{1} << node.value; }

}  // namespace

Seeker::Seeker(NodeId self, std::uint32_t node_count)
    : self_(self), node_count_(node_count), asked_(self), served_(self) {
  AMASIA_CHECK(node_count <= 64, "lifelines are bits of a word");
}

void Seeker::ask(SeekStep& step, std::uint64_t random) {
  const std::uint32_t others = node_count_ - 1;
  const auto distance = static_cast<std::uint32_t>(random % others) + 1;
  asked_ = NodeId(static_cast<std::uint16_t>((self_.value + distance) % node_count_));
  --tries_left_;
  step.send.push({SeekKind::kRequest, asked_});
}

SeekStep Seeker::on_idle(std::uint64_t random) {
  SeekStep step;
  if (state_ != State::kContent || node_count_ < 2) return step;  // S1, S3
  state_ = State::kAsking;
  tries_left_ = std::min(kTries, node_count_ - 1);
  ask(step, random);
  return step;
}

SeekStep Seeker::on_nothing(NodeId from, std::uint64_t random) {
  SeekStep step;
  if (state_ != State::kAsking || from != asked_) {
    step.refused = "an answer to a request that was not made";
    return step;
  }
  if (tries_left_ > 0) {
    ask(step, random);
    return step;
  }
  state_ = State::kWaiting;
  // A hypercube that closes to a ring: any node reaches any other in a few steps.
  for (std::uint32_t distance = 1; distance < node_count_; distance *= 2) {
    const NodeId buddy(static_cast<std::uint16_t>((self_.value + distance) % node_count_));
    if ((lifelines_out_ & bit_of(buddy)) != 0) continue;  // S1
    lifelines_out_ |= bit_of(buddy);
    step.send.push({SeekKind::kLifeline, buddy});
  }
  return step;
}

SeekStep Seeker::on_tasks(NodeId from, bool for_lifeline) {
  SeekStep step;
  if (!is_peer(from)) {
    step.refused = "tasks from no other node";
  } else if (for_lifeline && (lifelines_out_ & bit_of(from)) == 0) {
    step.refused = "tasks for a lifeline that it does not have";
  } else if (!for_lifeline && (state_ != State::kAsking || from != asked_)) {
    step.refused = "tasks for a request that was not made";
  } else if (for_lifeline) {
    lifelines_out_ &= ~bit_of(from);
    if (state_ == State::kWaiting) state_ = State::kContent;
  } else {
    state_ = State::kContent;
  }
  return step;
}

SeekStep Seeker::on_request(NodeId from, bool can_give) {
  SeekStep step;
  if (!is_peer(from)) {
    step.refused = "a request from no other node";
  } else if (can_give) {
    step.give = true;
  } else {
    step.send.push({SeekKind::kNothing, from});
  }
  return step;
}

SeekStep Seeker::on_lifeline(NodeId from, bool can_give) {
  SeekStep step;
  if (!is_peer(from) || (lifelines_here_ & bit_of(from)) != 0) {
    step.refused = "a second lifeline";
  } else if (can_give) {
    step.give = true;
  } else {
    lifelines_here_ |= bit_of(from);
  }
  return step;
}

std::optional<NodeId> Seeker::surplus() {
  if (lifelines_here_ == 0) return std::nullopt;
  do {
    served_ = NodeId(static_cast<std::uint16_t>((served_.value + 1) % node_count_));
  } while ((lifelines_here_ & bit_of(served_)) == 0);
  lifelines_here_ &= ~bit_of(served_);
  return served_;
}

std::array<std::uint64_t, 4> Seeker::fingerprint() const {
  const bool asking = state_ == State::kAsking;
  return {static_cast<std::uint64_t>(state_) | (asking ? tries_left_ : 0u) << 8 |
              std::uint64_t{asking ? asked_.value : 0u} << 16,
          lifelines_out_, lifelines_here_, served_.value};
}

}  // namespace amasia::nodes
