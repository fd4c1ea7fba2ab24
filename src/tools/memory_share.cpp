// SPDX-License-Identifier: Apache-2.0
#include "tools/memory_share.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace amasia::tools {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kNone = ~Bytes{0};

// The number at the beginning of a text; kNone where there is none, as in "max".
Bytes number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Bytes value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : kNone;
}

std::string line_with(const fs::path& file, std::string_view start) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(start)) return line.substr(start.size());
  }
  return {};
}

}  // namespace

Bytes host_memory(const fs::path& root) {
  Bytes least = number(line_with(root / "proc/meminfo", "MemTotal:"));
  if (least != kNone) least *= base::kKiB;
  const fs::path groups = root / "sys/fs/cgroup";
  // Version 2: the group and all above. In a container the path may be one of outside; what is
  // there then is the container's own group, mounted as the root.
  const std::string own = line_with(root / "proc/self/cgroup", "0::/");
  for (fs::path path = own;; path = path.parent_path()) {
    least = std::min(least, number(line_with(groups / path / "memory.max", "")));
    if (path.empty()) break;
  }
  least = std::min(least, number(line_with(groups / "memory/memory.limit_in_bytes", "")));
  return least == kNone ? 0 : least;
}

}  // namespace amasia::tools
