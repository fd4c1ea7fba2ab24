// SPDX-License-Identifier: Apache-2.0
// A frame is what goes over a network: a header of 32 bytes and a body. Integers are in the byte
// order of the nodes, which are of one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/messages.hpp"

namespace amasia::fabric {

inline constexpr std::uint16_t kFrameVersion = 1;

// The longest body of a frame: the user's, and what a stage above the back end puts before it.
inline constexpr Bytes kStampRoom = 8;
inline constexpr Bytes kMaxFrameBody = kMaxBody + kStampRoom;

// The fabric's own types.
inline constexpr MessageType kHelloType = 1;    // body: Nonce
inline constexpr MessageType kProofType = 2;    // body: Nonce, Mac
inline constexpr MessageType kGoodbyeType = 3;  // no body; only a farewell may follow it
// No body. Answers a goodbye: all that came before that was taken in. Until then the peer stays, as
// what it has sent may be lost with its end of the connection.
inline constexpr MessageType kFarewellType = 4;

struct FrameHeader {
  std::uint16_t version = kFrameVersion;
  MessageType type = 0;
  std::uint32_t length = 0;    // of the body
  std::uint64_t sequence = 0;  // counts the frames of one direction after the handshake, from 0
  std::uint64_t token = 0;     // of the direction, known only after the handshake; 0 during it
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint32_t reserved = 0;
};
inline constexpr std::size_t kFrameHeaderSize = 32;
static_assert(sizeof(FrameHeader) == kFrameHeaderSize);
static_assert(std::has_unique_object_representations_v<FrameHeader>);

// The header that `bytes` hold, if they are as many as a header has; nothing in it is checked.
std::optional<FrameHeader> read_header(std::span<const std::byte> bytes);

}  // namespace amasia::fabric
