// SPDX-License-Identifier: Apache-2.0
#include "os/free_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace amasia::os {
namespace {

Bytes value_of(std::string_view text, std::string_view name) {
  const std::size_t line = text.find(name);
  if (line == std::string_view::npos) return 0;
  text.remove_prefix(line + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  Bytes kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib * base::kKiB;
}

}  // namespace

FreeMemory parse_free_memory(std::string_view text) {
  return {value_of(text, "MemAvailable:"), value_of(text, "SwapFree:")};
}

FreeMemory free_memory() {
  std::ifstream file("/proc/meminfo");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_free_memory(text.str());
}

}  // namespace amasia::os
