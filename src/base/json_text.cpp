// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <fmt/format.h>

namespace amasia::base {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (byte < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += character;
    }
  }
  return out + '"';
}

}  // namespace amasia::base
