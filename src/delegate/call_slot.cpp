// SPDX-License-Identifier: Apache-2.0
#include "delegate/call_slot.hpp"

#include <algorithm>
#include <utility>

#include "os/os.hpp"

namespace amasia::delegate {

std::string AwaitedCall::text() const {
  switch (object) {
    case Object::kFutex: return fmt::format("{} the futex at {:#x}", what, number);
    case Object::kDescriptor:
      return fmt::format("node 0's answer to {} on descriptor {}", what, number);
    case Object::kPath: return fmt::format("node 0's answer to {} of '{}'", what, path);
  }
  return what;
}

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

void CallSlots::answer(std::uint64_t ticket, long result, Nanos taken,
                       std::vector<std::byte> reply) noexcept {
  if (!in_use(ticket)) return;
  CallSlot& answered = slot(ticket);
  answered.result = result;
  answered.taken = taken;
  answered.reply = std::move(reply);
  answered.phase.store(CallSlot::kAnswered, std::memory_order_release);
  os::futex_wake(answered.phase, 1);
}

bool CallSlots::wait_beyond(std::uint64_t ticket, CallSlot::Phase phase, Nanos deadline,
                            const AwaitedCall& awaited) noexcept {
  CallSlot& slept_on = slot(ticket);
  const Nanos began = os::monotonic_now();
  Nanos complain_at = watchdog_ > 0 ? began + watchdog_ : kNoDeadline;
  for (;;) {
    const std::uint32_t seen = slept_on.phase.load(std::memory_order_acquire);
    if (seen > phase) return true;
    const Nanos now = os::monotonic_now();
    if (now >= complain_at) {
      complain(awaited, now - began);
      complain_at = awaited.once ? kNoDeadline : now + watchdog_;
    }
    if (now >= deadline) return false;
    const Nanos next = std::min(deadline, complain_at);
    os::futex_wait(slept_on.phase, seen, next == kNoDeadline ? -1 : next - now);
  }
}

// The thread may stand on a managed stack, and the log's memory comes from the C library's heap,
// which the service thread uses too.
void CallSlots::complain(const AwaitedCall& awaited, Nanos waited) const noexcept {
  const AwaitedCall said = awaited;
  os::in_runtime_section([this, said, waited] {
    base::log_line(base::LogLevel::kWarning, "node {} has waited {} ms for {}", self_.value,
                   waited / base::kMillisecond, said.text());
  });
}

}  // namespace amasia::delegate
