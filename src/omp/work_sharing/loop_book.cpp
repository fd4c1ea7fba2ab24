// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/loop_book.hpp"

#include <algorithm>

namespace amasia::omp {

// kMostLoops where it is one too many.
std::size_t LoopBook::position(const LoopSite& site, std::size_t used) {
  AMASIA_CHECK(used <= kMostLoops, "a book has so many lines");
  const auto end = sites_.begin() + static_cast<std::ptrdiff_t>(used);
  const auto found = std::find(sites_.begin(), end, site.code);
  if (found != end) return static_cast<std::size_t>(found - sites_.begin());
  if (used == kMostLoops) return kMostLoops;
  sites_[used] = site.code;
  lines_[used].place = site.place;
  used_.store(used + 1, std::memory_order_release);  // partner: entries
  return used;
}

std::vector<LoopBook::Entry> LoopBook::entries() const {
  std::vector<Entry> out(used_.load(std::memory_order_acquire));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Line& line = lines_[i];
    const std::uint32_t how = line.how.load(std::memory_order_relaxed);
    out[i] = {sites_[i],
              line.place,
              line.runs.load(std::memory_order_relaxed),
              line.iterations.load(std::memory_order_relaxed),
              {static_cast<LoopForm>(how >> 16), static_cast<loops::ScheduleKind>(how >> 8 & 0xff),
               static_cast<loops::ScheduleKind>(how & 0xff),
               line.chunk.load(std::memory_order_relaxed),
               line.count.load(std::memory_order_relaxed)}};
  }
  return out;
}

}  // namespace amasia::omp
