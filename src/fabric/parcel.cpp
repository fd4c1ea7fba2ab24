// SPDX-License-Identifier: Apache-2.0
#include "fabric/parcel.hpp"

#include <cstring>

#include "fabric/frame.hpp"

namespace amasia::fabric {

void check_message(std::uint32_t node_count, NodeId to, MessageType type, std::size_t length) {
  AMASIA_CHECK(to.value < node_count, "no such node");
  AMASIA_CHECK(type >= kFirstFreeType && type < kTypeCount, "message types lie in [0x100, 0x400)");
  AMASIA_CHECK(length <= kMaxFrameBody, "a body is at most 4 MiB");
}

Parcel pack(NodeId from, MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload) {
  Parcel parcel{from, type, {}, head.size() + payload.size()};
  parcel.words.resize((parcel.length + 7) / 8);
  auto* const bytes = reinterpret_cast<std::byte*>(parcel.words.data());
  if (!head.empty()) std::memcpy(bytes, head.data(), head.size());
  if (!payload.empty()) std::memcpy(bytes + head.size(), payload.data(), payload.size());
  return parcel;
}

void deliver(Dispatcher& dispatcher, const Parcel& parcel) {
  AMASIA_CHECK(dispatcher.takes(parcel.type), "a message of a type that nobody takes");
  dispatcher.deliver({parcel.from,
                      parcel.type,
                      {reinterpret_cast<const std::byte*>(parcel.words.data()), parcel.length}});
}

}  // namespace amasia::fabric
