// SPDX-License-Identifier: Apache-2.0
// Which teams OMP_DISPLAY_AFFINITY=true shows (OpenMP 5.0, 6.13): the first one, and those of which
// a format tells something else than of the last one, as each runtime takes that. The runtime of a
// node would show its own part, in its own numbers, so it is not told of the variable where there
// are several nodes.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.hpp"

namespace amasia::omp {

inline constexpr const char* kDisplayAffinity = "OMP_DISPLAY_AFFINITY";

// Whether the variable's value turns it on, as the runtime has it: libgomp knows true and false,
// libomp further words. Pure.
bool turns_on_display(std::string_view value, bool libomp);

// What tells one team of a forking thread from another.
struct TeamLook {
  std::uint32_t level = 1;
  std::uint32_t ancestor = 0;  // the number of the forking thread
  std::int32_t proc_bind = 0;  // as the clause has it
  // By node that takes part: how many threads.
  std::vector<std::pair<base::NodeId, std::uint32_t>> threads;
  friend bool operator==(const TeamLook&, const TeamLook&) = default;
};

// What was shown last of the teams that one thread forks. For that thread.
class ShownTeam {
 public:
  // Whether the team that is about to be forked is to be shown, and takes it for shown. libomp
  // shows those that differ from the one before, which may have been at another level; libgomp
  // those that differ from the one before at level 1, and all at further levels.
  bool is_news(TeamLook look, bool libomp);

 private:
  TeamLook last_;  // without threads: none yet
};

}  // namespace amasia::omp
