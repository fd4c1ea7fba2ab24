// SPDX-License-Identifier: Apache-2.0
#include "omp/locks/lock_protocol.hpp"

#include <bit>

namespace amasia::omp {
namespace {

using Token = LockLocal::Token;
using Kind = LockEffect::Kind;

void change_token(LockLocal& lock, Token from, Token to) {
  AMASIA_CHECK(lock.token == from, "a token changes from the state that the step expects");
  lock.token = to;
}

void request(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  change_token(lock, Token::kAbsent, Token::kRequested);
  effects.send(LockEventKind::kRequest, site.home, site.self);
}

void request_try(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  change_token(lock, Token::kAbsent, Token::kTrying);
  effects.send(LockEventKind::kTryRequest, site.home, site.self);
}

// Gives the token away; asks for it again when threads of this node still wait.
void pass_on(LockLocal& lock, const LockSite& site, NodeId to, LockEffects& effects) {
  change_token(lock, Token::kHere, Token::kAbsent);
  lock.held = lock.next_known = lock.lingers = lock.nudged = false;
  lock.handed = lock.barged = 0;
  effects.send(LockEventKind::kToken, to, site.self);
  if (lock.waiting > 0) request(lock, site, effects);
}

// The next may have to wait for longer than a few hand-overs take: it must know whom to nudge.
void linger(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  if (lock.lingers) return;
  lock.lingers = true;
  effects.send(LockEventKind::kLingers, lock.next, site.self);
}

// The lock is free on this node and a running thread takes it.
void take_free(LockLocal& lock, LockEffects& effects) {
  lock.held = true;
  lock.barged = lock.waiting > 0 ? lock.barged + 1 : 0;
  effects.tell(Kind::kGrantCaller);
}

// The first waiting thread is given the lock in its sleep.
void grant_waiter(LockLocal& lock, LockEffects& effects) {
  lock.held = true;
  --lock.waiting;
  lock.barged = 0;
  effects.tell(Kind::kGrantWaiter);
}

void acquire(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  if (lock.token == Token::kHere && !lock.held) {
    take_free(lock, effects);
    return;
  }
  ++lock.waiting;
  if (lock.token == Token::kAbsent) request(lock, site, effects);
}

void retry(LockLocal& lock, LockEffects& effects) {
  AMASIA_CHECK(lock.waiting > 0, "only a waiting thread retries");
  if (lock.token != Token::kHere || lock.held) {
    effects.tell(Kind::kRefuseCaller);
    return;
  }
  lock.held = true;
  --lock.waiting;
  lock.barged = 0;
  effects.tell(Kind::kGrantCaller);
}

void attempt(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  switch (lock.token) {
    case Token::kHere:
      if (lock.held) {
        effects.tell(Kind::kRefuseCaller);
      } else {
        take_free(lock, effects);
      }
      return;
    case Token::kRequested:  // a thread of this node is before it
      effects.tell(Kind::kRefuseCaller);
      return;
    case Token::kAbsent:
      request_try(lock, site, effects);
      [[fallthrough]];
    case Token::kTrying:
      ++lock.trying;
      return;
  }
}

// Whether the next's turn has come, now that the lock is free.
bool ends_turn(const LockLocal& lock, const LockSite& site, bool may_linger) {
  if (!lock.next_known) return false;
  if (lock.nudged) return true;
  if (may_linger) return lock.handed >= site.linger_bound;
  return lock.waiting == 0 || lock.handed >= site.hand_over_bound;
}

void release(LockLocal& lock, const LockSite& site, bool may_linger, LockEffects& effects) {
  AMASIA_CHECK(lock.token == Token::kHere && lock.held, "only a lock that is held is released");
  lock.held = false;
  if (ends_turn(lock, site, may_linger)) {
    pass_on(lock, site, lock.next, effects);
    return;
  }
  if (lock.next_known) {
    ++lock.handed;
    if (lock.waiting == 0 || lock.handed > site.hand_over_bound) linger(lock, site, effects);
  }
  if (lock.waiting == 0) return;
  if (lock.barged >= site.barge_bound) {
    grant_waiter(lock, effects);
  } else {
    effects.tell(Kind::kWakeWaiter);
  }
}

// The lock was unset on node `from`. The thread that set it may be another node's: the program has
// seen to it that it has set it, and until this message comes to it nobody else can get the lock,
// so whichever node holds it is the one that is meant.
void unset(LockLocal& lock, const LockSite& site, NodeId from, bool may_linger,
           LockEffects& effects) {
  if (lock.held) return release(lock, site, may_linger, effects);
  const NodeId next{static_cast<NodeId::representation>((site.self.value + 1u) % site.node_count)};
  if (next == from) {
    effects.tell(Kind::kNobodyHolds);
  } else {
    effects.send(LockEventKind::kUnset, next, from);
  }
}

void token_arrived(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  const bool tried = lock.token == Token::kTrying;
  change_token(lock, tried ? Token::kTrying : Token::kRequested, Token::kHere);
  const std::uint32_t trying = lock.trying;
  lock.trying = 0;
  lock.lingers_at = 0;
  if (trying > 0) {
    lock.held = true;
    effects.tell(Kind::kGrantTry);
    if (trying > 1) effects.tell(Kind::kRefuseTries);
  } else if (lock.waiting > 0) {
    grant_waiter(lock, effects);
  } else if (lock.next_known) {  // it was recalled, and another node wants it already
    pass_on(lock, site, lock.next, effects);
  }
}

bool rests(const LockLocal& lock) {
  return lock.token == Token::kHere && !lock.held && lock.waiting == 0;
}

void forward(LockLocal& lock, const LockSite& site, NodeId to, bool may_linger,
             LockEffects& effects) {
  AMASIA_CHECK(lock.token != Token::kAbsent, "only a node that has or expects the token is tail");
  AMASIA_CHECK(!lock.next_known, "a node has one next");
  if (rests(lock) && !may_linger) {
    pass_on(lock, site, to, effects);
    return;
  }
  lock.next_known = true;
  lock.next = to;
  lock.handed = 0;
  if (rests(lock)) linger(lock, site, effects);
}

// The next, or one that has been it, has waited enough.
void nudge(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  if (lock.token != Token::kHere || !lock.next_known) return;
  lock.nudged = true;
  if (rests(lock)) pass_on(lock, site, lock.next, effects);
}

void nudge_next(LockLocal& lock, const LockSite& site, LockEffects& effects) {
  if (lock.lingers_at == 0) return;
  const int node = std::countr_zero(lock.lingers_at);
  lock.lingers_at &= lock.lingers_at - 1;
  effects.send(LockEventKind::kNudge, NodeId{static_cast<NodeId::representation>(node)},
               site.self);
}

void forward_try(LockLocal& lock, const LockSite& site, NodeId to, LockEffects& effects) {
  AMASIA_CHECK(lock.token != Token::kAbsent, "only a node that has or expects the token is tail");
  AMASIA_CHECK(!lock.next_known, "the tail has no next");
  if (rests(lock)) {
    pass_on(lock, site, to, effects);
    effects.send(LockEventKind::kTryMoved, site.home, site.self);
  } else {
    effects.send(LockEventKind::kTryFailed, to, site.self);
    effects.send(LockEventKind::kTryRefused, site.home, site.self);
  }
}

void enqueue(LockHome& lock, NodeId node, LockHomeEffects& effects) {
  AMASIA_CHECK(node != lock.tail, "the tail has or expects the token and does not ask for it");
  effects.send(LockEventKind::kForward, lock.tail, node);
  lock.tail = node;
}

void probe(LockHome& lock, NodeId node, LockHomeEffects& effects) {
  AMASIA_CHECK(node != lock.tail, "the tail has or expects the token and does not ask for it");
  lock.probing = true;
  lock.prober = node;
  effects.send(LockEventKind::kForwardTry, lock.tail, node);
}

// The first node of `set` after `node`, round the circle, so that no node is always last.
NodeId first_after(std::uint64_t set, NodeId node) {
  const int shift = (node.value + 1) % 64;
  return NodeId{static_cast<std::uint16_t>((std::countr_zero(std::rotr(set, shift)) + shift) % 64)};
}

void end_probe(LockHome& lock, LockHomeEffects& effects) {
  AMASIA_CHECK(lock.probing, "the outcome of a try answers a try");
  lock.probing = false;
  const NodeId last = lock.prober;
  while (lock.deferred_requests != 0) {
    const NodeId node = first_after(lock.deferred_requests, last);
    lock.deferred_requests &= ~(1ull << node.value);
    enqueue(lock, node, effects);
  }
  if (lock.deferred_tries != 0) {
    const NodeId node = first_after(lock.deferred_tries, last);
    lock.deferred_tries &= ~(1ull << node.value);
    probe(lock, node, effects);
  }
}

}  // namespace

LockLocal initial_lock_local(NodeId self, NodeId home) {
  LockLocal lock;
  lock.token = self == home ? Token::kHere : Token::kAbsent;
  return lock;
}

LockHome initial_lock_home(NodeId home) {
  LockHome lock;
  lock.tail = home;
  return lock;
}

bool LockLocal::is_valid() const {
  if ((lingers || nudged) && (token != Token::kHere || !next_known)) return false;
  if (lingers_at != 0 && token != Token::kRequested) return false;
  switch (token) {
    case Token::kAbsent: return idle();
    case Token::kRequested: return !held && trying == 0;
    case Token::kTrying: return !held;
    case Token::kHere: return trying == 0 && (held || waiting > 0 || !next_known || lingers);
  }
  return false;
}

void step_lock_local(LockLocal& lock, const LockSite& site, LockEvent event,
                     LockEffects& effects) {
  switch (event.kind) {
    case LockEventKind::kAcquire: acquire(lock, site, effects); break;
    case LockEventKind::kRetry: retry(lock, effects); break;
    case LockEventKind::kTry: attempt(lock, site, effects); break;
    case LockEventKind::kRelease: unset(lock, site, site.self, event.may_linger, effects); break;
    case LockEventKind::kUnset: unset(lock, site, event.node, false, effects); break;
    case LockEventKind::kPause:
      if (lock.lingers && rests(lock)) pass_on(lock, site, lock.next, effects);
      break;
    case LockEventKind::kNudgeNext: nudge_next(lock, site, effects); break;
    case LockEventKind::kLingers:
      if (lock.token == Token::kRequested) lock.lingers_at |= 1ull << event.node.value;
      break;
    case LockEventKind::kNudge: nudge(lock, site, effects); break;
    case LockEventKind::kRecall:
      if (lock.token == Token::kAbsent) request_try(lock, site, effects);
      break;
    case LockEventKind::kForward:
      forward(lock, site, event.node, event.may_linger, effects);
      break;
    case LockEventKind::kForwardTry: forward_try(lock, site, event.node, effects); break;
    case LockEventKind::kToken: token_arrived(lock, site, effects); break;
    case LockEventKind::kTryFailed:
      change_token(lock, Token::kTrying, Token::kAbsent);
      if (lock.trying > 0) effects.tell(Kind::kRefuseTries);
      lock.trying = 0;
      if (lock.waiting > 0) request(lock, site, effects);
      break;
    default: AMASIA_CHECK(false, "a node gets no message that is meant for a home");
  }
  AMASIA_CHECK(lock.is_valid(), "a step keeps a lock's state valid");
}

void step_lock_home(LockHome& lock, LockEvent event, LockHomeEffects& effects) {
  const std::uint64_t bit = 1ull << event.node.value;
  switch (event.kind) {
    case LockEventKind::kRequest:
      AMASIA_CHECK(!((lock.deferred_requests | lock.deferred_tries) & bit),
                   "a node asks once at a time");
      if (lock.probing) {
        lock.deferred_requests |= bit;
      } else {
        enqueue(lock, event.node, effects);
      }
      break;
    case LockEventKind::kTryRequest:
      AMASIA_CHECK(!((lock.deferred_requests | lock.deferred_tries) & bit),
                   "a node asks once at a time");
      if (lock.probing) {
        lock.deferred_tries |= bit;
      } else {
        probe(lock, event.node, effects);
      }
      break;
    case LockEventKind::kTryMoved:
      lock.tail = lock.prober;
      end_probe(lock, effects);
      break;
    case LockEventKind::kTryRefused: end_probe(lock, effects); break;
    default: AMASIA_CHECK(false, "a home gets no message that is meant for a node");
  }
}

}  // namespace amasia::omp
