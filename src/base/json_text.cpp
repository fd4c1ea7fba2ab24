// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <fmt/format.h>

namespace amasia::base {
namespace {

// How many bytes the character of UTF-8 takes that `text` (not empty) begins with; 0 where it
// begins with none: neither an encoding longer than needed, nor half of a surrogate pair, nor one
// beyond U+10FFFF is one (Unicode, table 3-7).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  unsigned least = 0x80, most = 0xbf;
  if (first == 0xe0) least = 0xa0;
  if (first == 0xed) most = 0x9f;
  if (first == 0xf0) least = 0x90;
  if (first == 0xf4) most = 0x8f;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    length = utf8_length(text);
    if (length == 0) {
      out += "\\ufffd";
      length = 1;
      continue;
    }
    if (length > 1) {
      out += text.substr(0, length);
      continue;
    }
    const char character = text[0];
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
