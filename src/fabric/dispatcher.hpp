// SPDX-License-Identifier: Apache-2.0
// What the back ends share: who takes which message, and what is counted.
//
// field      | written by               | read by         | guarded by
// table_     | set_handler, before poll | takes, deliver  | happens before the first poll()
// lost_      | likewise                 | report_lost     | likewise
// counters   | any thread               | statistics      | relaxed atomics, each by itself
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "fabric/messages.hpp"

namespace amasia::fabric {

class Dispatcher {
 public:
  void set_handler(MessageType first, MessageType last, Handler* handler);
  void set_peer_lost_handler(PeerLostHandler* handler) { lost_ = handler; }

  bool takes(MessageType type) const { return type < kTypeCount && table_[type] != nullptr; }
  // Runs the handler, on this thread. The type must be taken.
  void deliver(const Incoming& message);
  void report_lost(NodeId peer, std::string_view why);

  void count_out(std::size_t body) {
    messages_out_.fetch_add(1, std::memory_order_relaxed);
    bytes_out_.fetch_add(body, std::memory_order_relaxed);
  }
  void count_refused() { frames_refused_.fetch_add(1, std::memory_order_relaxed); }
  void count_reordered() { frames_reordered_.fetch_add(1, std::memory_order_relaxed); }
  void count_queued(std::size_t body);
  void count_unqueued(std::size_t body) {
    bytes_queued_.fetch_sub(body, std::memory_order_relaxed);
  }
  Statistics statistics() const;

 private:
  std::array<Handler*, kTypeCount> table_{};
  PeerLostHandler* lost_ = nullptr;
  // Statistics: relaxed, because nothing is concluded from one counter about another.
  std::atomic<std::uint64_t> messages_out_{0};
  std::atomic<std::uint64_t> messages_in_{0};
  std::atomic<Bytes> bytes_out_{0};
  std::atomic<Bytes> bytes_in_{0};
  std::atomic<std::uint64_t> frames_refused_{0};
  std::atomic<std::uint64_t> frames_reordered_{0};
  std::atomic<Bytes> bytes_queued_{0};
  std::atomic<Bytes> bytes_queued_max_{0};
};

}  // namespace amasia::fabric
