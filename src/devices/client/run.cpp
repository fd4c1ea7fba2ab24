// SPDX-License-Identifier: Apache-2.0
#include "devices/client/run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "devices/client/task.hpp"

namespace amasia::devices {
namespace {

bool are_alike(const Argument& first, const Argument& second) {
  if (first.is_buffer() != second.is_buffer()) return false;
  if (!first.is_buffer()) return true;
  // Memory for one task only would be needed for all of a run at once.
  return first.resident != nullptr && first.resident == second.resident &&
         first.kernel_reads() == second.kernel_reads() &&
         first.kernel_writes() == second.kernel_writes();
}

std::int64_t earliest(std::int64_t known, Nanos time) {
  if (known == 0 || time == 0) return std::max(known, time);
  return std::min(known, time);
}

}  // namespace

std::uint32_t run_length_max(Nanos expected, std::uint32_t most) {
  if (expected <= 0 || expected > kBriefTask) return 1;
  const auto fitting = static_cast<std::uint32_t>(kRunTime / std::max(expected, kLeastTask));
  return std::clamp(fitting, 1U, std::max(most, 1U));
}

bool are_alike(const Task& first, const Task& second) {
  const auto same = [](const Argument& a, const Argument& b) { return are_alike(a, b); };
  return first.identity != 0 && first.identity == second.identity &&
         first.allowed == second.allowed && first.preferred == second.preferred &&
         first.priority == second.priority && first.items() == second.items() &&
         (first.flags & MCL_FLAG_NO_RES) == (second.flags & MCL_FLAG_NO_RES) &&
         std::equal(first.arguments.begin(), first.arguments.end(), second.arguments.begin(),
                    second.arguments.end(), same);
}

Nanos BriefTimes::expected(std::uint64_t items) const {
  if (per_item_ <= 0) return 0;
  return std::max<Nanos>(1, std::llround(per_item_ * static_cast<double>(items)));
}

void BriefTimes::learn(std::uint64_t items, Nanos took) {
  if (items == 0 || took <= 0) return;
  const double now = static_cast<double>(took) / static_cast<double>(items);
  const bool longer = per_item_ > 0 && now > per_item_;
  per_item_ = per_item_ <= 0 ? now : longer ? std::min(now, 2 * per_item_)
                                           : per_item_ + (now - per_item_) / 8;
}

bool is_worth_waking(std::span<const QueuedRun> queued, DeviceSet room) {
  return std::any_of(queued.begin(), queued.end(), [&](const QueuedRun& unheard) {
    const DeviceSet open = unheard.devices & room;
    if (unheard.heard || open == 0) return false;
    const auto known = std::count_if(queued.begin(), queued.end(), [&](const QueuedRun& one) {
      return one.heard && (one.devices & open) != 0;
    });
    return std::popcount(open) > known;
  });
}

bool Run::note_end(const Outcome& outcome, std::uint8_t failure, Bytes copied) {
  if (failure != 0) {
    ended.failure = failure;
    ++ended.failed;
  }
  ended.copy_began = earliest(ended.copy_began, outcome.copy_began);
  ended.run_began = earliest(ended.run_began, outcome.run_began);
  ended.run_ended = std::max(ended.run_ended, outcome.run_ended);
  ended.copy_ended = std::max(ended.copy_ended, outcome.copy_ended);
  ended.copied += copied;
  ran += outcome.run_ended - outcome.run_began;
  ended.idle = std::max<Nanos>(0, ended.run_ended - ended.run_began - ran);
  return --left == 0;
}

}  // namespace amasia::devices
