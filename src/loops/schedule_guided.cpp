// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "loops/schedule.hpp"

namespace amasia::loops {
namespace {

// A node takes half of its even share of what is left; its threads then take an even share each of
// what the node has. A thread's first chunk is thus half of libgomp's, as it is with libomp.
constexpr std::uint64_t kPartOfShare = 2;

// OpenMP asks for at least `chunk` iterations in all chunks but the one with the last iteration. So
// no less is left in a node's pool: what would be, goes along.
std::uint64_t at_least_chunk(std::uint64_t wanted, std::uint64_t remaining, std::uint64_t chunk) {
  const std::uint64_t least = std::max<std::uint64_t>(chunk, 1);
  const std::uint64_t size = std::max(wanted, least);
  return size >= remaining || remaining - size < least ? remaining : size;
}

std::uint64_t guided_node_take(std::uint64_t remaining, std::uint64_t chunk, Sharers sharers) {
  const std::uint64_t share =
      remaining / sharers.threads * sharers.node_threads / kPartOfShare;
  // Near the end at least a chunk for each thread, or the others of the node ask again at once.
  std::uint64_t least = 0;
  if (__builtin_mul_overflow(std::max<std::uint64_t>(chunk, 1),
                             std::uint64_t{sharers.node_threads}, &least)) {
    least = remaining;
  }
  return at_least_chunk(std::max(share, least), remaining, chunk);
}

std::uint64_t guided_thread_take(std::uint64_t remaining, std::uint64_t chunk, Sharers sharers) {
  const std::uint64_t even =
      remaining / sharers.node_threads + (remaining % sharers.node_threads != 0 ? 1 : 0);
  return at_least_chunk(even, remaining, chunk);
}

}  // namespace

const Schedule kGuidedSchedule = {ScheduleKind::kGuided, "guided", nullptr, guided_node_take,
                                  guided_thread_take};

}  // namespace amasia::loops
