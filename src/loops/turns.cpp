// SPDX-License-Identifier: Apache-2.0
#include "loops/turns.hpp"

#include <algorithm>

namespace amasia::loops {

ScheduleRequest in_turn(ScheduleRequest asked) {
  if (asked.kind == ScheduleKind::kAuto) return {ScheduleKind::kStatic, 0};
  if (!schedule_of(asked.kind).pooled()) return asked;
  return {ScheduleKind::kStatic, std::max<std::uint64_t>(asked.chunk, 1)};
}

std::uint32_t thread_after(ScheduleRequest schedule, std::uint64_t count, std::uint64_t next,
                           std::uint32_t thread, std::uint64_t round, std::uint32_t threads) {
  AMASIA_CHECK(next < count && thread < threads, "there is a chunk after this thread's");
  const auto share = schedule_of(schedule.kind).share;
  AMASIA_CHECK(share != nullptr, "its shares are fixed beforehand");
  std::uint32_t after = thread;
  for (std::uint32_t tries = 0; tries < threads; ++tries) {
    if (++after == threads) {
      after = 0;
      ++round;
    }
    const auto range = share(count, schedule.chunk, after, threads, round);
    if (range.has_value() && range->begin == next) return after;
  }
  AMASIA_CHECK(false, "some thread has the next iterations");
  return 0;
}

std::optional<std::uint64_t> row_length(std::span<const Space> nest) {
  std::uint64_t length = 1;
  for (const Space& space : nest) {
    if (__builtin_mul_overflow(length, space.count, &length)) return std::nullopt;
  }
  return length;
}

std::optional<std::uint64_t> row_place(std::span<const Space> nest,
                                       std::span<const std::int64_t> values) {
  AMASIA_CHECK(nest.size() == values.size(), "each loop of the nest has a value");
  std::uint64_t place = 0;
  for (std::size_t d = 0; d < nest.size(); ++d) {
    const Space& space = nest[d];
    const bool up = static_cast<std::int64_t>(space.step) > 0;
    const auto first = static_cast<std::int64_t>(space.first);
    if (up ? values[d] < first : values[d] > first) return std::nullopt;
    const auto value = static_cast<std::uint64_t>(values[d]);
    const std::uint64_t distance = up ? value - space.first : space.first - value;
    const std::uint64_t step = up ? space.step : 0 - space.step;
    // Most steps are 1, and to divide takes as long as all the rest.
    const std::uint64_t number = step == 1 ? distance : distance / step;
    if (number >= space.count) return std::nullopt;
    place = place * space.count + number;
  }
  return place;
}

}  // namespace amasia::loops
