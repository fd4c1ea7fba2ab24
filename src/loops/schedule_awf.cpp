// SPDX-License-Identifier: Apache-2.0
#include "loops/takes.hpp"

namespace amasia::loops {
namespace {
// Adaptive weighted factoring (Banicescu, Velusamy, IPDPS 2002; as its variant C, which weighs anew
// with every request): the pool's powers follow what requests report.
std::uint64_t awf_node_take(std::uint64_t remaining, std::uint64_t chunk, const Taker& taker,
                            Batch& batch) {
  return batch_take(remaining, chunk, taker.threads, taker.power, taker.all_power, batch);
}
}  // namespace

const Schedule kAwfSchedule = {ScheduleKind::kAwf,  "awf", nullptr, awf_node_take,
                               thread_of_batch_take, true};

}  // namespace amasia::loops
