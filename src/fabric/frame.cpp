// SPDX-License-Identifier: Apache-2.0
#include "fabric/frame.hpp"

#include <cstring>

namespace amasia::fabric {

std::optional<FrameHeader> read_header(std::span<const std::byte> bytes) {
  if (bytes.size() != kFrameHeaderSize) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

}  // namespace amasia::fabric
