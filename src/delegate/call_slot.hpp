// SPDX-License-Identifier: Apache-2.0
// Where a thread waits for the answer to a delegated call. In runtime memory, since the answer is
// written by the service thread; found by a ticket that stays unique when the slot is used again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/base.hpp"

namespace amasia::delegate {

inline constexpr Nanos kNoDeadline = std::numeric_limits<Nanos>::max();

// field  | who writes                                   | who reads
// phase  | owner (before it sends), service thread      | owner, who sleeps on it
// result, reply | service thread, before phase (release) | owner, after phase (acquire)
struct CallSlot {
  enum Phase : std::uint32_t { kFree, kWaiting, kRegistered, kAnswered };
  std::atomic<std::uint32_t> phase{kFree};
  std::atomic<std::uint32_t> generation{0};
  long result = 0;
  std::vector<std::byte> reply;
};

// A fixed number of slots, taken without a lock: a signal handler of the program may interrupt a
// thread that is inside, and make a delegated call of its own.
class CallSlots {
 public:
  static constexpr std::size_t kSlots = 1024;

  // Blocks, by yielding, while as many threads of this node as there are slots wait.
  std::uint64_t acquire() noexcept;
  void release(std::uint64_t ticket) noexcept;
  CallSlot& slot(std::uint64_t ticket) noexcept { return slots_[ticket % kSlots]; }

  // The service thread's side. Each does nothing if the ticket is no longer in use.
  void registered(std::uint64_t ticket) noexcept;
  void answer(std::uint64_t ticket, long result, std::vector<std::byte> reply = {}) noexcept;

  // Owner: sleeps until the phase has passed `phase`, or to the deadline (CLOCK_MONOTONIC).
  bool wait_beyond(std::uint64_t ticket, CallSlot::Phase phase, Nanos deadline) noexcept;

 private:
  bool in_use(std::uint64_t ticket) noexcept;
  std::array<CallSlot, kSlots> slots_;
  std::atomic<std::uint32_t> next_{0};  // relaxed: only spreads the search
};

}  // namespace amasia::delegate
