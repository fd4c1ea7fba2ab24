// SPDX-License-Identifier: Apache-2.0
#include "omp/thread_locals/thread_homes.hpp"

namespace amasia::omp {

std::span<const ThreadHomes::Move> ThreadHomes::follow(std::span<const NodeShare> shares) {
  moves_.clear();
  for (const NodeShare& share : shares) {
    const std::uint32_t end = share.offset + share.threads;
    if (homes_.size() < end) homes_.resize(end, kNowhere);
    for (std::uint32_t thread = share.offset; thread < end; ++thread) {
      std::uint16_t& home = homes_[thread];
      if (home != kNowhere && home != share.node.value) {
        moves_.push_back({thread, NodeId{home}, share.node});
      }
      home = share.node.value;
    }
  }
  return moves_;
}

}  // namespace amasia::omp
