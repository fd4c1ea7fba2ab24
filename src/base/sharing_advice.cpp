// SPDX-License-Identifier: Apache-2.0
#include "base/sharing_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantities.hpp"

namespace amasia::base {
namespace {

// The second run of a loop is shared by what the first has told.
constexpr std::uint64_t kRunsByGuess = 1;
// What is less is not worth a reader's time, or passes from run to run.
constexpr double kLeastPart = 0.08;
constexpr double kLeast = 10e6;  // ns

double time_of(const RegionNodeStatistics& node) {
  return static_cast<double>(node.busy_ns + node.stall_ns);
}

bool is_by_guess(const RegionStatistics& region) {
  if (region.rule == RegionStatistics::Rule::kThreshold || region.profiled) return false;
  if (region.shared.runs == 0 || region.shared.runs > kRunsByGuess) return false;
  if (region.alone.runs + region.elsewhere.runs + region.runs_come_home > 0) return false;
  const auto has_its_bounds = [](const LoopStatistics& loop) {
    using Form = LoopStatistics::Form;
    return loop.form != Form::kPool && loop.form != Form::kOrdered && loop.form != Form::kParts;
  };
  return !region.loops.empty() && std::ranges::all_of(region.loops, has_its_bounds);
}

}  // namespace

std::string sharing_advice(const RegionStatistics& region) {
  if (!is_by_guess(region)) return "";
  const RegionNodeStatistics* first = nullptr;
  const RegionNodeStatistics* last = nullptr;
  double speeds = 0, parts = 0;
  for (const RegionNodeStatistics& node : region.per_node) {
    if (node.threads == 0) continue;
    const double time = time_of(node);
    if (time <= 0 || node.work <= 0) return "";
    speeds += node.work / time;
    parts += node.work;
    if (first == nullptr || time < time_of(*first)) first = &node;
    if (last == nullptr || time > time_of(*last)) last = &node;
  }
  if (first == last) return "";
  const double even = parts / speeds, took = time_of(*last);
  if (took - even < std::max(kLeast, kLeastPart * took)) return "";
  const auto text = [](double time) { return duration_text(static_cast<Nanos>(time)); };
  return fmt::format(
      "uneven: node {} took {}, node {} {}; with parts by that all would take about {}. "
      "--profile=FILE with these statistics begins so in the next run, schedule(runtime) finds it "
      "within one",
      first->id, text(time_of(*first)), last->id, text(took), text(even));
}

}  // namespace amasia::base
