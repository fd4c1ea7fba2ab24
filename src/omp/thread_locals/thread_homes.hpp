// SPDX-License-Identifier: Apache-2.0
// On which node each thread of the team has run last, so has its thread-local variables. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omp/region/region.hpp"

namespace amasia::omp {

class ThreadHomes {
 public:
  struct Move {
    std::uint32_t thread;
    NodeId from;
    NodeId to;
    bool operator==(const Move&) const = default;
  };
  // A team with these shares begins: which threads' variables have to move before. Their homes are
  // then as the shares say. Threads beyond the team keep theirs. Valid until the next call.
  std::span<const Move> follow(std::span<const NodeShare> shares);
  // The thread, one of the last team's, has come to the origin in the middle of a region.
  void come_home(std::uint32_t thread) { homes_[thread] = base::kOrigin.value; }

 private:
  static constexpr std::uint16_t kNowhere = base::kMaxNodes;  // it has never run
  std::vector<std::uint16_t> homes_;
  std::vector<Move> moves_;
};

}  // namespace amasia::omp
