// SPDX-License-Identifier: Apache-2.0
#include "launch/messages.hpp"

#include <algorithm>
#include <cstring>

namespace amasia::launch {

void Message::set_text(std::string_view sentence) noexcept {
  text_size = static_cast<std::uint32_t>(std::min(sentence.size(), kMaxSentence));
  std::memcpy(text.data(), sentence.data(), text_size);
}

const char* malformed(const Message& message, std::size_t size) noexcept {
  if (size != sizeof(Message)) return "it has another size";
  if (message.version != kProtocolVersion) return "it has another version";
  if (message.text_size > kMaxSentence) return "its text is longer than a message";
  switch (message.type) {
    case MessageType::kMembership:
      if (message.node_count == 0 || message.node_count > base::kMaxNodes) {
        return "its node count is out of range";
      }
      if (message.node >= message.node_count) return "its node is not below the node count";
      return nullptr;
    case MessageType::kJoin:
    case MessageType::kReady:
    case MessageType::kFailed:
    case MessageType::kFinishing:
    case MessageType::kAlone:
      return nullptr;
  }
  return "its type is unknown";
}

}  // namespace amasia::launch
