// SPDX-License-Identifier: Apache-2.0
// A queue of records in memory that two processes map: one process produces, the other consumes.
//
// field           written by   read by    order
// tail            producer     consumer   release / acquire: the slots before it are filled
// head            consumer     producer   release / acquire: the slots before it are free
// sleeps          both         both       sequentially consistent, see below
// slots[i]        producer     consumer   by tail and head
//
// operation          caller     effect
// push, publish      producer   fills slots; makes them seen, and says whether to wake the consumer
// pop                consumer   copies the oldest record out
// may_sleep, wake    consumer   declares that it will sleep, unless something has arrived; on
//                               request only until something urgent enough comes
//
// Invariants: (A) head <= tail <= head + capacity, as counts that wrap at 2^32. (B) each side keeps
// its own count privately and only ever publishes it, so that the other side can spoil neither the
// count nor memory: a value of the other that breaks (A) is answered by kCorrupt, never believed.
// (C) a consumer sleeps only after it set `sleeps` and then saw no new tail; a producer looks at
// `sleeps` only after it published tail: one of the two sees the other (sequential consistency).
// (D) who sleeps until something urgent enough comes looks again by itself after a while: what is
// less urgent may lie there meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "devices/wire/records.hpp"

namespace amasia::devices {

// RingControl::sleeps: awake, or the least Urgency that the sleeper wants to be woken for.
inline constexpr std::uint32_t kAwake = 0;

struct RingControl {
  alignas(64) std::atomic<std::uint32_t> head{0};
  alignas(64) std::atomic<std::uint32_t> tail{0};
  alignas(64) std::atomic<std::uint32_t> sleeps{kAwake};
};
inline constexpr std::uint32_t kRingSlots = 1024;  // a power of two, so that counts may wrap
struct Ring {
  RingControl control;
  alignas(64) Record slots[kRingSlots];
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "no lock crosses a process");

enum class RingState { kOk, kNothing, kCorrupt };

// One thread at a time.
class RingProducer {
 public:
  explicit RingProducer(Ring* ring) : ring_(ring) {}
  // How many records fit; more than kRingSlots means that the consumer's count makes no sense.
  std::uint32_t space() const {
    // Pairs with the release in pop().
    const std::uint32_t used = tail_ - ring_->control.head.load(std::memory_order_acquire);
    return kRingSlots - used;
  }
  RingState push(const Record& record) {
    const std::uint32_t left = space();
    if (left > kRingSlots) return RingState::kCorrupt;
    if (left == 0) return RingState::kNothing;
    ring_->slots[tail_ % kRingSlots] = record;
    ++tail_;
    return RingState::kOk;
  }
  // After any number of pushes. True: the consumer sleeps, or is about to, and must be woken; its
  // next producer need not do it again.
  bool publish(Urgency urgency = Urgency::kOwn) {
    // Partner: pop() and may_sleep() of the consumer (invariant C).
    ring_->control.tail.store(tail_, std::memory_order_seq_cst);
    const std::uint32_t sleeps = ring_->control.sleeps.load(std::memory_order_seq_cst);
    if (sleeps == kAwake || sleeps > static_cast<std::uint32_t>(urgency)) return false;
    return ring_->control.sleeps.exchange(kAwake, std::memory_order_seq_cst) != kAwake;
  }

 private:
  Ring* ring_;
  std::uint32_t tail_ = 0;
};

// One thread at a time.
class RingConsumer {
 public:
  explicit RingConsumer(Ring* ring) : ring_(ring) {}
  RingState pop(Record* record) {
    // Pairs with publish().
    const std::uint32_t filled =
        ring_->control.tail.load(std::memory_order_acquire) - head_;
    if (filled == 0) return RingState::kNothing;
    if (filled > kRingSlots) return RingState::kCorrupt;
    *record = ring_->slots[head_ % kRingSlots];  // once: the producer may change it meanwhile
    ++head_;
    // Pairs with space().
    ring_->control.head.store(head_, std::memory_order_release);
    return RingState::kOk;
  }
  bool empty() const {
    return ring_->control.tail.load(std::memory_order_acquire) == head_;
  }
  // Announces sleep, until something of that urgency comes. False: something is there already, of
  // whatever urgency, and the announcement is taken back.
  bool may_sleep(Urgency least = Urgency::kNone) {
    // Partner: publish() (invariant C).
    ring_->control.sleeps.store(static_cast<std::uint32_t>(least), std::memory_order_seq_cst);
    if (ring_->control.tail.load(std::memory_order_seq_cst) == head_) return true;
    wake();
    return false;
  }
  // It does not sleep any more: spares producers the wake-up.
  void wake() { ring_->control.sleeps.store(kAwake, std::memory_order_seq_cst); }

 private:
  Ring* ring_;
  std::uint32_t head_ = 0;
};

// What the daemon and one client share.
struct Region {
  Ring to_daemon;
  Ring to_client;
};

}  // namespace amasia::devices
