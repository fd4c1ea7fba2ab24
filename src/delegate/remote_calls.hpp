// SPDX-License-Identifier: Apache-2.0
// System calls on the program's descriptors, carried to the origin and made there.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "delegate/call_shape.hpp"
#include "delegate/call_slot.hpp"
#include "delegate/delegation.hpp"
#include "delegate/messages.hpp"
#include "os/os.hpp"

namespace amasia::delegate {

// The side that asks: nodes other than the origin.
class RemoteCalls {
 public:
  static constexpr std::size_t kCallNumbers = 512;  // more than the kernel has

  RemoteCalls(fabric::Fabric& fabric, CallSlots& slots) : fabric_(fabric), slots_(slots) {}

  // Program threads; sleeps as long as the call takes at the origin.
  long answer(const os::TrappedCall& call) noexcept;

  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // As Delegation has them.
  static CallTimes own_times() noexcept;
  CallTimes times() const noexcept;
  static const std::atomic<bool>& own_carrying() noexcept;

 private:
  long refuse(const CallShape& shape) noexcept;
  long carry(const CallShape& shape, const os::TrappedCall& call);
  void count(Nanos taken, Nanos waited) noexcept;

  fabric::Fabric& fabric_;
  CallSlots& slots_;
  std::atomic<std::uint64_t> calls_{0};    // relaxed: statistics
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<Nanos> at_origin_{0}, carriage_{0};  // relaxed: sums
  std::array<std::atomic<bool>, kCallNumbers> said_{};  // which refusals the log has
};

// The side that answers: the origin. A call may block (a pipe, a lock), so each is made by a thread
// of a pool that grows while all its threads are busy, up to kMaxThreads; the service thread only
// queues. Threads sleep when there is nothing to do.
class CallServer {
 public:
  static constexpr std::size_t kMaxThreads = 64;

  explicit CallServer(fabric::Fabric& fabric) : fabric_(fabric) {}
  // Blocks until the calls under way have ended; those not begun are dropped.
  ~CallServer();

  // Service thread. `body` is a CallMessage and the bytes that the call reads. False: malformed.
  bool on_call(NodeId from, std::span<const std::byte> body);

 private:
  struct Request {
    NodeId from;
    CallMessage message;
    std::vector<std::byte> in;
  };
  void work();
  void execute(Request& request);

  fabric::Fabric& fabric_;
  std::mutex mutex_;  // guards what follows; never held while a call is made
  std::condition_variable changed_;
  std::deque<Request> queue_;
  std::vector<std::thread> threads_;
  std::size_t idle_threads_ = 0;
  bool stopping_ = false;
};

}  // namespace amasia::delegate
