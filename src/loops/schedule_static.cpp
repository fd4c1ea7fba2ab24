// SPDX-License-Identifier: Apache-2.0
#include "loops/schedule.hpp"
#include "loops/static_share.hpp"

namespace amasia::loops {
namespace {
std::optional<Iterations> static_share(std::uint64_t count, std::uint64_t chunk,
                                       std::uint32_t thread, std::uint32_t threads,
                                       std::uint64_t round) {
  if (chunk > 0) return static_chunk(count, chunk, thread, threads, round);
  if (round > 0) return std::nullopt;
  const Iterations block = static_block(count, thread, threads);
  return block.empty() ? std::nullopt : std::optional(block);
}
}  // namespace

const Schedule kStaticSchedule = {
    ScheduleKind::kStatic, "static", static_share, nullptr, nullptr};

}  // namespace amasia::loops
