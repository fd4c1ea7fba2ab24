// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "loops/takes.hpp"
#include "loops/weights.hpp"

namespace amasia::loops {
namespace {

// A node takes half of its share, by speed, of what is left; its threads then take an even share of
// what the node has each. A thread's first chunk is thus half of libgomp's, as it is with libomp.
constexpr std::uint64_t kPartOfShare = 2;

// What a node's pool keeps is never less than a chunk: at_least_chunk().
std::uint64_t guided_node_take(std::uint64_t remaining, std::uint64_t chunk, const Taker& taker,
                               Batch&) {
  const std::uint64_t share = part_of(remaining, taker.power, taker.all_power) / kPartOfShare;
  // Near the end at least a chunk for each thread, or the others of the node ask again at once.
  const std::uint64_t least = chunk_per_thread(remaining, chunk, taker.threads);
  return at_least_chunk(std::max(share, least), remaining, chunk);
}

std::uint64_t guided_thread_take(const Stock& stock, std::uint64_t chunk) {
  const std::uint64_t even =
      stock.remaining / stock.threads + (stock.remaining % stock.threads != 0 ? 1 : 0);
  return at_least_chunk(even, stock.remaining, chunk);
}

}  // namespace

const Schedule kGuidedSchedule = {ScheduleKind::kGuided, "guided", nullptr, guided_node_take,
                                  guided_thread_take};

}  // namespace amasia::loops
