// SPDX-License-Identifier: Apache-2.0
#include "loops/schedule.hpp"

namespace amasia::loops {
namespace {
// `auto` leaves the choice to the runtime. Even shares need no message and keep a thread's
// iterations on the same node from loop to loop, which over distributed memory outweighs balance.
std::optional<Iterations> auto_share(std::uint64_t count, std::uint64_t, std::uint32_t thread,
                                     std::uint32_t threads, std::uint64_t round) {
  return kStaticSchedule.share(count, 0, thread, threads, round);
}
}  // namespace

const Schedule kAutoSchedule = {ScheduleKind::kAuto, "auto", auto_share, nullptr, nullptr};

}  // namespace amasia::loops
