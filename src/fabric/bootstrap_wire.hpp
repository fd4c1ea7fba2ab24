// SPDX-License-Identifier: Apache-2.0
// The frames between a node and its launcher (table in docs/protocols/fabric.md): a header, a key,
// a value. Pure, but for the reader's buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/bootstrap.hpp"

namespace amasia::fabric {

inline constexpr std::uint32_t kBootstrapMagic = 0x31626d61;  // "amb1"

enum class BootstrapWord : std::uint16_t {
  kHello = 1,    // client: I am here
  kWelcome = 2,  // server: node is yours; argument = number of nodes; value = the secret
  kPut = 3,      // client: key, value
  kFence = 4,    // client: I have come
  kFenced = 5,   // server: all have come
  kGet = 6,      // client: node, key
  kValue = 7,    // server: value
  kMissing = 8,  // client: who has not come to the fence?
  kAbsent = 9,   // server: value = the node numbers, 16 bits each
  kError = 10,   // server: value = a sentence, in the place of any answer
};

struct BootstrapHeader {
  std::uint32_t magic = kBootstrapMagic;
  BootstrapWord word{};
  std::uint16_t node = 0;
  std::uint32_t argument = 0;
  std::uint32_t key_length = 0;
  std::uint32_t value_length = 0;
};
static_assert(sizeof(BootstrapHeader) == 20);

struct BootstrapMessage {
  BootstrapWord word{};
  NodeId node;
  std::uint32_t argument = 0;
  std::string key;
  std::vector<std::byte> value;
};

// A header whose magic, word and lengths are in range; else a reason.
Result<BootstrapHeader> read_bootstrap_header(std::span<const std::byte> bytes);
std::vector<std::byte> encode(const BootstrapMessage& message);

// Puts messages together from bytes as they come.
class BootstrapReader {
 public:
  void append(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  // The next whole message; nullopt if bytes are wanting; an error if the stream is malformed,
  // after which it must not be read further.
  Result<std::optional<BootstrapMessage>> next();

 private:
  std::vector<std::byte> buffer_;
};

}  // namespace amasia::fabric
