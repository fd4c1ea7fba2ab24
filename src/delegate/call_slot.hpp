// SPDX-License-Identifier: Apache-2.0
// Where a thread waits for the answer to a delegated call. In runtime memory, since the answer is
// written by the service thread; found by a ticket that stays unique when the slot is used again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::delegate {

inline constexpr Nanos kNoDeadline = std::numeric_limits<Nanos>::max();

// field                | who writes                              | who reads
// phase                | owner (before it sends), service thread | owner, who sleeps on it
// result, taken, reply | service thread, before phase (release)  | owner, after phase (acquire)
struct CallSlot {
  enum Phase : std::uint32_t { kFree, kWaiting, kRegistered, kAnswered };
  std::atomic<std::uint32_t> phase{kFree};
  std::atomic<std::uint32_t> generation{0};
  long result = 0;
  Nanos taken = 0;  // by the call itself, at the origin
  std::vector<std::byte> reply;
};

// What a thread waits for, for people: "node 0's answer to write on descriptor 5".
struct AwaitedCall {
  enum class Object : std::uint8_t { kFutex, kDescriptor, kPath };
  Object object;
  const char* what;            // a futex: of what about it; else the call's name; a literal
  std::uint64_t number = 0;    // the futex's address, or the descriptor
  const char* path = nullptr;  // in runtime memory
  bool once = false;  // the program's own wait, which may be meant to last: one word is enough

  std::string text() const;
};

// A fixed number of slots, taken without a lock: a signal handler of the program may interrupt a
// thread that is inside, and make a delegated call of its own.
class CallSlots {
 public:
  static constexpr std::size_t kSlots = 1024;

  // Waits of node `self` that take longer than `watchdog` go to the log; 0: none do.
  CallSlots(NodeId self, Nanos watchdog) : self_(self), watchdog_(watchdog) {}

  // Blocks, by yielding, while as many threads of this node as there are slots wait.
  std::uint64_t acquire() noexcept;
  void release(std::uint64_t ticket) noexcept;
  CallSlot& slot(std::uint64_t ticket) noexcept { return slots_[ticket % kSlots]; }

  // The service thread's side. Each does nothing if the ticket is no longer in use.
  void registered(std::uint64_t ticket) noexcept;
  void answer(std::uint64_t ticket, long result, Nanos taken = 0,
              std::vector<std::byte> reply = {}) noexcept;

  // Owner: sleeps until the phase has passed `phase`, or to the deadline (CLOCK_MONOTONIC). In the
  // trap of a system call, on any stack.
  bool wait_beyond(std::uint64_t ticket, CallSlot::Phase phase, Nanos deadline,
                   const AwaitedCall& awaited) noexcept;

 private:
  bool in_use(std::uint64_t ticket) noexcept;
  void complain(const AwaitedCall& awaited, Nanos waited) const noexcept;

  const NodeId self_;
  const Nanos watchdog_;
  std::array<CallSlot, kSlots> slots_;
  std::atomic<std::uint32_t> next_{0};  // relaxed: only spreads the search
};

}  // namespace amasia::delegate
