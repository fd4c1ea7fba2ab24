// SPDX-License-Identifier: Apache-2.0
// One process that is connected to the daemon. Private to the server.
#pragma once

#include "devices/daemon/server.hpp"

namespace amasia::devices {

// What EventPoll says of the doorbells of all clients.
inline constexpr std::uint64_t kDoorbellTag = 1;

struct Server::Connection {
  std::uint64_t tag = 0;
  ClientId client;  // its tag as a client number
  os::Descriptor socket;
  os::Peer peer;
  enum class Phase { kNew, kAnnouncing, kServed, kClosed } phase = Phase::kNew;
  HelloPacket hello;
  std::vector<DeviceDescription> devices;

  os::Descriptor memory;
  Region* region = nullptr;
  std::optional<RingConsumer> incoming;
  std::optional<RingProducer> outgoing;
  // The client's own, so that no other one can take its wake-ups away. The daemon neither reads nor
  // writes it (EventPoll::add_edges): its flags and its count are the client's, too.
  os::Wakeup doorbell;
  os::RemoteWakeup wakes_client;
  // Records that the ring had no room for. Bounded by what a client may have: each answers a task
  // or evicts a copy of its own.
  std::deque<Record> waiting;
  bool wrote = false;

  Connection() = default;
  ~Connection() {
    if (region != nullptr) os::unmap(reinterpret_cast<std::uintptr_t>(region), sizeof(Region));
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
};

}  // namespace amasia::devices
