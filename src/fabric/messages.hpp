// SPDX-License-Identifier: Apache-2.0
// What every back end offers: `Fabric`, one node's end of all its connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/base.hpp"

namespace amasia::fabric {

// What a message means to its receiver. 0x000-0x0ff is the fabric's own, 0x100-0x1ff dsm,
// 0x200-0x2ff omp, 0x300-0x3bf launch and standard streams, 0x3c0-0x3cf tasks.
using MessageType = std::uint16_t;
inline constexpr MessageType kFirstFreeType = 0x100;
inline constexpr MessageType kTypeCount = 0x400;

// The longest body (head and payload together) of one message.
inline constexpr Bytes kMaxBody = 4 * base::kMiB;

// A message as its handler sees it. `body` is head followed by payload, aligned to 8 bytes, and
// valid only until the handler returns.
struct Incoming {
  NodeId from;
  MessageType type;
  std::span<const std::byte> body;
};

// Receives messages. Runs on the thread that polls, one call at a time per fabric. It must not
// block, must not touch managed memory, and must not call poll(); it may send.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void on_message(const Incoming& message) = 0;
};

// Told once for each peer that is lost (died, unreachable, or broke the protocol), on the thread
// that polls, after the last message from that peer. A peer that left in order is not lost.
class PeerLostHandler {
 public:
  virtual ~PeerLostHandler() = default;
  // `why` is one sentence without a full stop, valid during the call.
  virtual void on_peer_lost(NodeId peer, std::string_view why) = 0;
};

// Counted since the fabric was made. Bytes are those of bodies; self-sends are counted too.
struct Statistics {
  std::uint64_t messages_out = 0;
  std::uint64_t messages_in = 0;
  Bytes bytes_out = 0;
  Bytes bytes_in = 0;
  // Frames from a sender without the secret, or after its loss: dropped, not delivered.
  std::uint64_t frames_refused = 0;
  // Frames that came out of order and were put back in order (UCX gives no promise of it).
  std::uint64_t frames_reordered = 0;
  // Bytes accepted by send() and not yet handed to the network, now and at most.
  Bytes bytes_queued = 0;
  Bytes bytes_queued_max = 0;
};

// operation  | caller                   | effect
// send       | any thread, any handler  | sends or queues a copy; never waits for a peer
// poll       | any thread, no handler   | runs handlers; returns 0 at once if another polls
// arm        | the thread that sleeps   | true: it may sleep on wait_descriptor()
// set_*      | before the first poll()  | registers handlers, which must outlive the fabric
// statistics | any thread               | a snapshot, each counter by itself
class Fabric {
 public:
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  virtual NodeId self() const = 0;
  virtual std::uint32_t node_count() const = 0;

  // Sends `head` followed by `payload` as one body of at most kMaxBody to `to`, which may be
  // self(). Both are free for reuse on return. `head` is meant for the fixed part of a message, so
  // that a page need not be copied behind it first. False if `to` is lost or has left: the message
  // is dropped; as loss is told to the PeerLostHandler, most callers need not look.
  virtual bool send(NodeId to, MessageType type, std::span<const std::byte> head,
                    std::span<const std::byte> payload = {}) = 0;

  // Makes progress and dispatches up to `budget` messages, in the order of arrival. Does not wait.
  // Returns how many were dispatched: 0 also if another thread is polling.
  virtual std::uint32_t poll(std::uint32_t budget) = 0;

  // To sleep: poll() until 0, then arm(); if true, wait for wait_descriptor() to become readable
  // (poll(2) or epoll, level-triggered), then poll() again. False: there is work, poll() again.
  // The descriptor may wake without cause. Nobody but poll() and arm() may read from it.
  virtual bool arm() = 0;
  virtual int wait_descriptor() const = 0;

  // Messages whose type is in [first, last] go to `handler`. Ranges must not overlap. A message of
  // a type that nobody takes is malformed (F3).
  virtual void set_handler(MessageType first, MessageType last, Handler* handler) = 0;
  virtual void set_peer_lost_handler(PeerLostHandler* handler) = 0;

  virtual Statistics statistics() const = 0;

 protected:
  Fabric() = default;
};

// Polls `fabric` until it dispatched something: for `spin` without sleeping, then sleeping, for
// `timeout` in all. Returns the number dispatched; 0 means time-out (or a wake-up for another
// thread's work). Any thread but a handler; blocks.
std::uint32_t wait_and_poll(Fabric& fabric, std::uint32_t budget, Nanos spin, Nanos timeout);

// A value as the bytes to send. T must be trivially copyable and is sent as it lies in memory:
// all nodes are of one build.
template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace amasia::fabric
