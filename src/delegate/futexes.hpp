// SPDX-License-Identifier: Apache-2.0
// futex(2) on managed words, across nodes.
#pragma once

#include <atomic>
#include <mutex>

#include "delegate/call_slot.hpp"
#include "delegate/futex_table.hpp"
#include "delegate/messages.hpp"
#include "os/os.hpp"

namespace amasia::delegate {

// operation   | caller                       | effect
// answer      | program threads              | does what the futex call asks; sleeps for as long as
//             |                              | it would
// wake_beside | runtime's threads            | at the origin: has threads of the program hear of a
//             |                              | wake-up that the kernel was asked for; how many did
// on_add, on_remove, on_wake | service thread of the origin | moves the table, answers
class Futexes {
 public:
  Futexes(fabric::Fabric& fabric, CallSlots& slots) : fabric_(fabric), slots_(slots) {}

  long answer(const os::TrappedCall& call) noexcept;
  long wake_beside(const os::TrappedCall& call) noexcept;

  void on_add(NodeId from, const FutexMessage& message);
  void on_remove(NodeId from, const FutexMessage& message);
  void on_wake(NodeId from, const FutexMessage& message);

  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  bool at_origin() const { return fabric_.self() == base::kOrigin; }
  long wait(std::uint64_t address, std::uint32_t expected, std::uint32_t bitset, Nanos deadline);
  long wake(FutexMessage wake_up);
  // Makes sure that every wake-up from now on reaches `waiter` (invariant G1).
  void enter_table(std::uint64_t address, std::uint64_t waiter, std::uint32_t bitset);
  // True if it was still there; false if a wake-up has been sent to it.
  bool leave_table(std::uint64_t address, std::uint64_t waiter);
  long ask_origin(Type type, FutexMessage message);
  // Threads of the program, which are in the table; then those of the runtime, in the kernel.
  long wake_at_origin(const FutexMessage& message);
  long wake_in_table(const FutexMessage& message);
  void answer_at(NodeId node, std::uint64_t ticket, long result);

  fabric::Fabric& fabric_;
  CallSlots& slots_;
  FutexTable table_;   // origin only, guarded by table_mutex_
  std::mutex table_mutex_;  // taken in runtime sections, and by the service thread
  std::atomic<std::uint64_t> calls_{0};  // relaxed: a statistic
};

}  // namespace amasia::delegate
