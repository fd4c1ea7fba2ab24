// SPDX-License-Identifier: Apache-2.0
#include "loops/takes.hpp"

namespace amasia::loops {
namespace {
// Weighted factoring (Flynn Hummel and others, SPAA 1996): parts of a batch go by core speed.
std::uint64_t wf_node_take(std::uint64_t remaining, std::uint64_t chunk, const Taker& taker,
                           Batch& batch) {
  return batch_take(remaining, chunk, taker.threads, taker.power, taker.all_power, batch);
}
}  // namespace

const Schedule kWfSchedule = {ScheduleKind::kWf, "wf", nullptr, wf_node_take,
                              thread_of_batch_take};

}  // namespace amasia::loops
