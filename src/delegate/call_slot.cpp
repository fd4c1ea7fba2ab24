// SPDX-License-Identifier: Apache-2.0
#include "delegate/call_slot.hpp"

#include <utility>

#include "os/os.hpp"

namespace amasia::delegate {

std::uint64_t CallSlots::acquire() noexcept {
  for (std::uint32_t tries = 0;; ++tries) {
    const std::uint32_t index = next_.fetch_add(1, std::memory_order_relaxed) % kSlots;
    CallSlot& slot = slots_[index];
    std::uint32_t expected = CallSlot::kFree;
    // Acquire pairs with the release in release(): the last owner is done with result and reply.
    if (slot.phase.compare_exchange_strong(expected, CallSlot::kWaiting,
                                           std::memory_order_acquire)) {
      const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed);
      return std::uint64_t{generation} * kSlots + index;
    }
    if (tries >= kSlots) os::yield_core();
  }
}

void CallSlots::release(std::uint64_t ticket) noexcept {
  CallSlot& released = slot(ticket);
  released.reply.clear();
  released.generation.fetch_add(1, std::memory_order_relaxed);
  released.phase.store(CallSlot::kFree, std::memory_order_release);
}

bool CallSlots::in_use(std::uint64_t ticket) noexcept {
  return slot(ticket).generation.load(std::memory_order_relaxed) == ticket / kSlots;
}

void CallSlots::registered(std::uint64_t ticket) noexcept {
  if (!in_use(ticket)) return;
  std::uint32_t expected = CallSlot::kWaiting;
  // An answer may have come first, from the same node, on behalf of a third one: it stays.
  slot(ticket).phase.compare_exchange_strong(expected, CallSlot::kRegistered,
                                             std::memory_order_release);
  os::futex_wake(slot(ticket).phase, 1);
}

void CallSlots::answer(std::uint64_t ticket, long result, std::vector<std::byte> reply) noexcept {
  if (!in_use(ticket)) return;
  CallSlot& answered = slot(ticket);
  answered.result = result;
  answered.reply = std::move(reply);
  answered.phase.store(CallSlot::kAnswered, std::memory_order_release);
  os::futex_wake(answered.phase, 1);
}

bool CallSlots::wait_beyond(std::uint64_t ticket, CallSlot::Phase phase, Nanos deadline) noexcept {
  CallSlot& awaited = slot(ticket);
  for (;;) {
    const std::uint32_t seen = awaited.phase.load(std::memory_order_acquire);
    if (seen > phase) return true;
    const Nanos left = deadline == kNoDeadline ? -1 : deadline - os::monotonic_now();
    if (deadline != kNoDeadline && left <= 0) return false;
    os::futex_wait(awaited.phase, seen, left);
  }
}

}  // namespace amasia::delegate
