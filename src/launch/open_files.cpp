// SPDX-License-Identifier: Apache-2.0
#include "launch/open_files.hpp"

#include "base/base.hpp"

namespace amasia::launch {

std::string why_too_few_files(std::uint64_t hard, unsigned nodes) {
  const int first = nodes == 1 ? kFirstOwnFileOfOrigin : kFirstOwnFileElsewhere;
  const std::uint64_t needed = static_cast<std::uint64_t>(first) + kOwnOpenFiles;
  if (hard >= needed) return "";
  const std::string job = nodes == 1 ? "1 node" : fmt::format("{} nodes", nodes);
  return fmt::format(
      "the hard limit of open files (ulimit -Hn) is {}; a job of {} needs {} or more", hard, job,
      needed);
}

}  // namespace amasia::launch
