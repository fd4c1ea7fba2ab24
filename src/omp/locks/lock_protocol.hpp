// SPDX-License-Identifier: Apache-2.0
// One lock of the program across nodes, as two pure state machines; docs/protocols/locks.md has the
// tables. The lock's token is at one node at a time; inside that node the lock is an ordinary one.
//
// Vocabulary. home: the node that orders the requests for a lock. tail: the node that asked last,
// so the one that will have the token last (initially the home). next: the node to which this node
// passes the token once it is done with it; it has at most one. try: a request that must not wait.
// hand-over: a release that keeps the lock for the threads of the same node.
// barging: a running thread takes a free lock although others of its node sleep for it. Waking a
// sleeper takes as long as hundreds of short critical sections, so a release wakes one and leaves
// the lock free meanwhile, as the program's own runtime does; but only so many times in a row.
// lingering: a node keeps the token although its next waits and no thread of its own does, because
// one of them is expected to be back sooner than the token could go and come. It says so to the
// next, which nudges it when it finds that it has waited enough.
//
// Invariants
//   (a) at most one node has the token or is being sent it;
//   (b) a node has at most one request or try outstanding, so the home defers at most one a node;
//   (c) the nodes that wait form one queue: token's node, its next, that one's next, …, tail;
//   (d) with a next known, at most `hand_over_bound` hand-overs precede passing the token on, where
//       it lingers `linger_bound`, and none that begins after the next's nudge has come;
//   (e) after `barge_bound` barging grants in a row the first sleeper is given the lock itself.
#pragma once

#include <array>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::omp {

// What a node keeps for a lock. The queue of waiting threads itself is the caller's, first come
// first served; `waiting` and `trying` are its lengths.
struct LockLocal {
  enum class Token : std::uint8_t { kAbsent, kRequested, kTrying, kHere };

  Token token = Token::kAbsent;
  bool held = false;                // by a thread of this node
  bool next_known = false;
  NodeId next{};
  bool lingers = false;             // and next has been told
  bool nudged = false;              // next has waited enough
  std::uint16_t handed = 0;         // hand-overs since next is known
  std::uint16_t barged = 0;         // grants to others since a sleeper was served
  std::uint32_t waiting = 0;        // threads that block for the lock
  std::uint32_t trying = 0;         // threads that wait for the outcome of the node's try
  // While the token is requested: the nodes that have said that it lingers there, a bit for each.
  // The one that is true is among them; others may be from earlier turns, come late.
  std::uint64_t lingers_at = 0;

  // Nothing to remember beyond where the token is.
  bool idle() const { return !held && !next_known && waiting == 0 && trying == 0; }
  bool is_valid() const;
  friend bool operator==(const LockLocal&, const LockLocal&) = default;
};

// What the home keeps for a lock.
struct LockHome {
  NodeId tail{};
  bool probing = false;             // a try is on its way to the tail; all else is deferred
  NodeId prober{};
  std::uint64_t deferred_requests = 0;  // bit per node
  std::uint64_t deferred_tries = 0;

  friend bool operator==(const LockHome&, const LockHome&) = default;
};

// Where a node's step happens.
struct LockSite {
  NodeId self{};
  NodeId home{};
  // A token takes about as long to travel as some hundred uncontended hand-overs; passing it on
  // after 16 keeps the nodes fair to each other at a small part of the throughput.
  std::uint16_t hand_over_bound = 16;
  std::uint16_t barge_bound = 64;
  std::uint16_t linger_bound = 4096;
  std::uint32_t node_count = 1;
};

enum class LockEventKind : std::uint8_t {
  // from threads of the node
  kAcquire,   // block until the lock is the thread's
  kRetry,     // of the first waiting thread, after kWakeWaiter: take it if it still is free
  kTry,       // take it if it is free
  kRelease,   // by the thread that has it, or one that acts for it on whatever node
  kPause,     // the node's threads come to a wait for others: the token lingers no longer
  kNudgeNext, // of a waiting thread, which finds that it has waited enough: nudge one node
  kRecall,    // at the home: try to fetch an unused lock's token, so that it can be forgotten
  // messages to a node
  kForward,     // from home: `node` comes after you
  kForwardTry,  // from home: give `node` the token if you do not use it
  kToken,       // from the previous node
  kTryFailed,   // from the tail: somebody uses the lock
  kLingers,     // from `node`, whose next you are: it keeps the token for a while
  kNudge,       // from the next: pass the token on as soon as it is free
  kUnset,       // round the nodes, from `node`, where the lock was unset and is not held
  // messages to the home
  kRequest,     // from `node`
  kTryRequest,  // from `node`
  kTryMoved,    // from the tail: the prober has been sent the token
  kTryRefused,  // from the tail: it has not
};

struct LockEvent {
  LockEventKind kind;
  NodeId node{};
  bool may_linger = false;  // kRelease, kForward: a thread of the node is expected soon
};

struct LockEffect {
  enum class Kind : std::uint8_t {
    kSend,         // `message` to `to`, about `subject`
    kGrantCaller,  // the thread whose event this is has the lock
    kRefuseCaller, // its try failed, or its retry: it goes on waiting
    kWakeWaiter,   // the first of the waiting threads is to retry
    kGrantWaiter,  // the first of the waiting threads has the lock
    kGrantTry,     // the first of the trying threads has the lock
    kRefuseTries,  // the (other) trying threads' tries failed
    kNobodyHolds,  // an unset has been to all nodes, and no thread has the lock
  };
  Kind kind;
  LockEventKind message{};
  NodeId to{};
  NodeId subject{};
  friend bool operator==(const LockEffect&, const LockEffect&) = default;
};

// What a step asks its caller to do, in order. A fixed size, so that no step allocates.
template <std::size_t kCapacity>
class EffectList {
 public:
  void send(LockEventKind message, NodeId to, NodeId subject) {
    add({LockEffect::Kind::kSend, message, to, subject});
  }
  void tell(LockEffect::Kind kind) { add({kind, {}, {}, {}}); }
  const LockEffect* begin() const { return effects_.data(); }
  const LockEffect* end() const { return effects_.data() + count_; }
  std::size_t size() const { return count_; }

 private:
  void add(LockEffect effect) {
    AMASIA_CHECK(count_ < effects_.size(), "a step's effects are bounded");
    effects_[count_++] = effect;
  }
  std::size_t count_ = 0;
  std::array<LockEffect, kCapacity> effects_;
};
using LockEffects = EffectList<3>;
// The end of a probe forwards what was deferred: one message a node, and one probe.
using LockHomeEffects = EffectList<base::kMaxNodes + 1>;

// A lock that no node has used yet: the token rests at its home.
LockLocal initial_lock_local(NodeId self, NodeId home);
LockHome initial_lock_home(NodeId home);

// Steps of a node. Appends to `effects`, in order.
void step_lock_local(LockLocal& lock, const LockSite& site, LockEvent event,
                     LockEffects& effects);
// Steps of the home.
void step_lock_home(LockHome& lock, LockEvent event, LockHomeEffects& effects);

}  // namespace amasia::omp
