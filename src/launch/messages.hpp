// SPDX-License-Identifier: Apache-2.0
// The messages between a process and its launcher. One message a packet (SOCK_SEQPACKET, an
// abstract address in the network namespace of the command), fixed sizes, host byte order: both
// ends run on one host and come from one build.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/base.hpp"

namespace amasia::launch {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kMaxSentence = 1000;

// Where the launcher listens, without the leading zero byte of an abstract address. Processes that
// inherit it (and the preload) may ask to become the origin.
inline constexpr const char* kLauncherVariable = "AMASIA_LAUNCHER";

enum class MessageType : std::uint32_t {
  // From a process to the launcher.
  kJoin = 1,       // "I am linked to an OpenMP runtime"; descriptors: its standard output and error
  kReady = 2,      // connected to the other nodes and found alike; descriptors: Membership::ready
  kFailed = 3,     // cannot be a node; text: why, one sentence for the user
  kFinishing = 4,  // the program ends in order: peers that leave from now on are not lost
  // From the launcher to a process, once, in answer to kJoin. Text of kMembership: the entry of the
  // control group that slows the program's threads on this node, or "".
  kMembership = 0x81,  // you are a node; descriptors: bootstrap, board, lifeline
  kAlone = 0x82,       // run as you would without Amasia; text: why, or "" if that needs no word
};

// The one frame for all types; `text` is for those that carry a sentence.
struct Message {
  std::uint32_t version = kProtocolVersion;
  MessageType type{};
  std::uint32_t node = 0;        // kMembership: this node; kFailed: unused
  std::uint32_t node_count = 0;  // kMembership
  std::uint32_t text_size = 0;
  std::array<char, kMaxSentence> text{};

  void set_text(std::string_view sentence) noexcept;
  std::string_view text_view() const noexcept { return {text.data(), text_size}; }
};
static_assert(std::is_trivially_copyable_v<Message>);

// Null if the frame may be acted upon, else what is wrong with it. `size` is what was received.
const char* malformed(const Message& message, std::size_t size) noexcept;

// Descriptors that travel with kMembership, in this order.
enum class MembershipDescriptor { kBootstrap = 0, kBoard = 1, kLifeline = 2 };
inline constexpr std::size_t kMembershipDescriptors = 3;

}  // namespace amasia::launch
