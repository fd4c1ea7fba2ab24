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

// What follows `marker` in the first line that has it, where it ends at the line's end.
std::string line_with(const fs::path& file, std::string_view marker) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(marker);
    if (at != std::string::npos) return line.substr(at + marker.size());
  }
  return {};
}

// Of the group and all above. In a container the path may be one of outside; what is there then is
// the container's own group, mounted as the root.
Bytes least_in_groups(const fs::path& root, const fs::path& group, const char* file) {
  Bytes least = kNone;
  for (fs::path path = group;; path = path.parent_path()) {
    least = std::min(least, number(line_with(root / path / file, "")));
    if (path.empty()) return least;
  }
}

}  // namespace

Bytes host_memory(const fs::path& root) {
  Bytes least = number(line_with(root / "proc/meminfo", "MemTotal:"));
  if (least != kNone) least *= base::kKiB;
  const fs::path groups = root / "sys/fs/cgroup", mine = root / "proc/self/cgroup";
  const std::string second = line_with(mine, "0::/"), first = line_with(mine, ":memory:/");
  least = std::min({least, least_in_groups(groups, second, "memory.max"),
                    least_in_groups(groups / "memory", first, "memory.limit_in_bytes")});
  return least == kNone ? 0 : least;
}

std::uint64_t kills_for_memory(const std::filesystem::path& root) {
  const std::uint64_t kills = number(line_with(root / "proc/vmstat", "oom_kill "));
  return kills == kNone ? 0 : kills;
}

}  // namespace amasia::tools
