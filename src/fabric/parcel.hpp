// SPDX-License-Identifier: Apache-2.0
// A message between nodes of one process, for the back ends that have no wire.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/dispatcher.hpp"

namespace amasia::fabric {

// A message on its way, or (type 0) the notice that `from` is lost.
struct Parcel {
  NodeId from;
  MessageType type = 0;
  // In words, so that bodies are aligned as promised.
  std::vector<std::uint64_t> words;
  std::size_t length = 0;
};

// What every back end demands of a message.
void check_message(std::uint32_t node_count, NodeId to, MessageType type, std::size_t length);
// A copy of head and payload as one body.
Parcel pack(NodeId from, MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload);
// Runs the handler of a parcel's type, on this thread.
void deliver(Dispatcher& dispatcher, const Parcel& parcel);

}  // namespace amasia::fabric
