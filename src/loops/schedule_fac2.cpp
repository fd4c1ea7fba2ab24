// SPDX-License-Identifier: Apache-2.0
#include "loops/takes.hpp"

namespace amasia::loops {
namespace {
std::uint64_t fac2_node_take(std::uint64_t remaining, std::uint64_t chunk, const Taker& taker,
                             Batch& batch) {
  return batch_take(remaining, chunk, taker.threads, taker.threads, taker.all_threads, batch);
}
}  // namespace

const Schedule kFac2Schedule = {ScheduleKind::kFac2, "fac2", nullptr, fac2_node_take,
                                thread_of_batch_take};

}  // namespace amasia::loops
