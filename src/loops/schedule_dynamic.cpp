// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "loops/schedule.hpp"
#include "loops/weights.hpp"

namespace amasia::loops {
namespace {

// A node takes this part of its share, by speed, of what is left. One chunk per thread, as in the
// paper, makes a message for every few chunks; half the share leaves a node alone with costly
// iterations when the cost varies along the loop. A quarter: messages grow with log(count), and
// what a node can be stuck with at the end is one chunk per thread, as in the paper.
constexpr std::uint64_t kPartOfShare = 4;

// All takes are whole chunks but the loop's last, so chunks lie where one pool would put them.
std::uint64_t dynamic_node_take(std::uint64_t remaining, std::uint64_t chunk, const Taker& taker,
                                Batch&) {
  const std::uint64_t size = std::max<std::uint64_t>(chunk, 1);
  const std::uint64_t chunks = remaining / size + (remaining % size != 0 ? 1 : 0);
  const std::uint64_t share = part_of(chunks, taker.power, taker.all_power) / kPartOfShare;
  const std::uint64_t wanted = std::max<std::uint64_t>(share, taker.threads);
  return wanted >= chunks ? remaining : wanted * size;
}

std::uint64_t dynamic_thread_take(const Stock& stock, std::uint64_t chunk) {
  return std::min(std::max<std::uint64_t>(chunk, 1), stock.remaining);
}

}  // namespace

const Schedule kDynamicSchedule = {ScheduleKind::kDynamic, "dynamic", nullptr, dynamic_node_take,
                                   dynamic_thread_take};

}  // namespace amasia::loops
