// SPDX-License-Identifier: Apache-2.0
#include "omp/region/region_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace amasia::omp {
namespace {

using base::RegionStatistics;

// Shares that its model has come to, over several executions.
std::vector<double> settled_speeds(const RegionStatistics& region) {
  std::vector<double> speeds;
  for (const std::optional<double>& ratio : region.csr) speeds.push_back(ratio.value_or(0));
  return speeds;
}

void scale(std::vector<double>& speeds) {
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  for (double& speed : speeds) speed /= fastest;
}

// By what nodes did in the one execution that is known, waiting for pages included: the next run
// fetches them, too. What began with a profile has that for a half: times vary from run to run.
std::vector<double> measured_speeds(const RegionStatistics& region, std::size_t nodes) {
  std::vector<double> speeds(nodes, 0);
  for (const base::RegionNodeStatistics& node : region.per_node) {
    const auto time = static_cast<double>(node.busy_ns + node.stall_ns);
    if (node.id >= nodes || node.threads == 0 || time <= 0) continue;
    speeds[node.id] = node.work / time / node.threads;
  }
  if (!region.profiled || region.csr.size() != nodes || speeds.front() <= 0) return speeds;
  scale(speeds);
  for (std::size_t i = 0; i < nodes; ++i) {
    speeds[i] = std::sqrt(speeds[i] * region.csr[i].value_or(0));
  }
  return speeds;
}

std::vector<double> speeds_of(const RegionStatistics& region, std::size_t nodes) {
  using Phase = RegionStatistics::Phase;
  // What came home was not measured to its end, and nothing says how long the rest would have been.
  if (region.shared.runs == 0 || region.runs_come_home == region.shared.runs) return {};
  if (region.phase == Phase::kShared) return settled_speeds(region);
  const bool was_shared_last = region.phase == Phase::kCold || region.phase == Phase::kWarm;
  return was_shared_last ? measured_speeds(region, nodes) : std::vector<double>();
}

}  // namespace

Result<RegionProfile> RegionProfile::make(const base::JobStatistics& earlier, std::size_t nodes) {
  if (earlier.nodes.size() != nodes) {
    return Error{fmt::format("is of a run on {} nodes, not {}", earlier.nodes.size(), nodes), 0};
  }
  RegionProfile profile;
  for (const RegionStatistics& region : earlier.regions) {
    if (region.phase == RegionStatistics::Phase::kAlone) {
      profile.found_[region.site].until_retried = static_cast<double>(region.until_retried_ns);
      continue;
    }
    std::vector<double> speeds = speeds_of(region, nodes);
    // The origin always has a part.
    if (speeds.size() != nodes || speeds.front() <= 0) continue;
    scale(speeds);
    profile.found_[region.site].speeds = std::move(speeds);
  }
  return profile;
}

const RegionProfile::Found* RegionProfile::find(std::string_view site) const {
  const auto found = found_.find(std::string(site));
  return found == found_.end() ? nullptr : &found->second;
}

std::span<const double> RegionProfile::core_speeds(std::string_view site) const {
  const Found* const found = find(site);
  return found == nullptr ? std::span<const double>() : found->speeds;
}

double RegionProfile::until_retried(std::string_view site) const {
  const Found* const found = find(site);
  return found == nullptr ? 0 : found->until_retried;
}

}  // namespace amasia::omp
