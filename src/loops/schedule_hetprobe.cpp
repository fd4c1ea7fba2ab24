// SPDX-License-Identifier: Apache-2.0
#include "loops/takes.hpp"

namespace amasia::loops {
namespace {
// Nothing is asked of anybody for what a node has already: so its threads take parts that shrink,
// which evens out what iterations differ by.
std::uint64_t probed_thread_take(const Stock& stock, std::uint64_t chunk) {
  return at_least_chunk(stock.remaining / stock.threads / 2, stock.remaining, chunk);
}
}  // namespace

const Schedule kHetProbeSchedule = {ScheduleKind::kHetProbe, "hetprobe", nullptr, nullptr,
                                    probed_thread_take, true};
// The same, probing again and again.
const Schedule kHetProbeISchedule = {ScheduleKind::kHetProbeI, "hetprobe-i", nullptr, nullptr,
                                     probed_thread_take, true};

}  // namespace amasia::loops
