// SPDX-License-Identifier: Apache-2.0
#include "fabric/bootstrap_wire.hpp"

#include <cstring>

namespace amasia::fabric {

Result<BootstrapHeader> read_bootstrap_header(std::span<const std::byte> bytes) {
  BootstrapHeader header;
  AMASIA_CHECK(bytes.size() == sizeof header, "a header is read from as many bytes as it has");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kBootstrapMagic) {
    return Error{"the bootstrap socket speaks another language", 0};
  }
  if (header.word < BootstrapWord::kHello || header.word > BootstrapWord::kError) {
    return Error{fmt::format("unknown bootstrap word {}", static_cast<int>(header.word)), 0};
  }
  if (header.key_length > kMaxBootstrapKey || header.value_length > kMaxBootstrapValue) {
    return Error{
        fmt::format("bootstrap frame of {} + {} bytes (at most {} + {})", header.key_length,
                    header.value_length, kMaxBootstrapKey, kMaxBootstrapValue),
        0};
  }
  return header;
}

std::vector<std::byte> encode(const BootstrapMessage& message) {
  AMASIA_CHECK(message.key.size() <= kMaxBootstrapKey, "keys have at most 255 bytes");
  AMASIA_CHECK(message.value.size() <= kMaxBootstrapValue, "values have at most 1 MiB");
  BootstrapHeader header;
  header.word = message.word;
  header.node = message.node.value;
  header.argument = message.argument;
  header.key_length = static_cast<std::uint32_t>(message.key.size());
  header.value_length = static_cast<std::uint32_t>(message.value.size());
  std::vector<std::byte> bytes(sizeof header + message.key.size() + message.value.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::byte* const body = bytes.data() + sizeof header;
  if (!message.key.empty()) std::memcpy(body, message.key.data(), message.key.size());
  if (!message.value.empty()) {
    std::memcpy(body + message.key.size(), message.value.data(), message.value.size());
  }
  return bytes;
}

Result<std::optional<BootstrapMessage>> BootstrapReader::next() {
  if (buffer_.size() < sizeof(BootstrapHeader)) return std::optional<BootstrapMessage>();
  const auto read = read_bootstrap_header(std::span(buffer_).first(sizeof(BootstrapHeader)));
  if (!read.ok()) return read.error();
  const BootstrapHeader& header = read.value();
  const std::size_t total = sizeof header + header.key_length + header.value_length;
  if (buffer_.size() < total) return std::optional<BootstrapMessage>();
  BootstrapMessage message;
  message.word = header.word;
  message.node = NodeId(header.node);
  message.argument = header.argument;
  const auto key = buffer_.begin() + sizeof header;
  const auto value = key + header.key_length;
  message.key.assign(reinterpret_cast<const char*>(&*buffer_.begin()) + sizeof header,
                     header.key_length);
  message.value.assign(value, value + header.value_length);
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(total));
  return std::optional(std::move(message));
}

}  // namespace amasia::fabric
