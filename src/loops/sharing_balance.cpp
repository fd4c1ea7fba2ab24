// SPDX-License-Identifier: Apache-2.0
// The sharing model's part about how much of a shared region each node does.
#include <algorithm>
#include <cmath>
#include <utility>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

// Shares are moved for an imbalance beyond this, ...
constexpr double kImbalance = 1.03, kStriking = 1.3;
// Of the executions that shares are judged by, so many that take long are no exceptions.
constexpr double kOftenLong = 0.15;
// ... which pays back what the data take that follow, so many times over, in as many executions as
// there have been.
constexpr double kPaysBack = 2;
constexpr std::uint32_t kLongestWindow = 32, kSettlingRuns = 2;

}  // namespace

double SharingModel::Recent::median_with(double latest) {
  const double before = std::exchange(last, latest), earlier = std::exchange(last_but_one, before);
  if (before == 0) return latest;
  if (earlier == 0) return std::min(latest, before);
  return std::max(std::min(latest, before), std::min(std::max(latest, before), earlier));
}

// Under a quota of CPU time one execution out of a few stands still for all of them: the median, by
// itself, would take a node for as fast as it is in between.
double SharingModel::Window::time_of(std::size_t node) const {
  const bool is_rule = long_runs[node] >= 2 && long_runs[node] >= kOftenLong * runs;
  return is_rule ? whole[node] : time[node];
}

// By sums over executions since the last change, more of them each time: single times vary, and a
// share that moves takes its data along.
void SharingModel::rebalance(std::span<const RegionPart> nodes) {
  // Data follow a share that has moved: what they cost then is no reason to move it back.
  if (window_.settling > 0) {
    --window_.settling;
    return;
  }
  double slowest = 0, rates = 0, work = 0, known = 0;
  ++window_.runs;
  for (std::size_t i = 0; i < node_count_; ++i) {
    const RegionPart& node = nodes[i];
    if (node.threads == 0) continue;
    if (node.work > 0) {
      const double latest = node.time() / node.work;
      const double median = recent_[i].median_with(latest);
      window_.work[i] += node.work;
      window_.time[i] += median * node.work;
      window_.whole[i] += node.time();
      if (latest > kStriking * median) ++window_.long_runs[i];
    }
    if (window_.work[i] <= 0 || window_.time[i] <= 0) continue;
    slowest = std::max(slowest, window_.time_of(i));
    rates += window_.work[i] / window_.time_of(i);
    work += window_.work[i];
    known += powers_[i];
  }
  if (rates <= 0) return;
  const double imbalance = slowest / (work / rates);
  const bool due = window_.runs >= window_.length || (window_.runs > 1 && imbalance > kStriking);
  if (!due) return;
  std::array<double, base::kMaxNodes> balanced = powers_;
  double moved = 0;
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (window_.work[i] <= 0 || window_.time[i] <= 0) continue;
    balanced[i] = window_.work[i] / window_.time_of(i) / rates * known;
    moved += std::abs(balanced[i] - powers_[i]) / 2 / known;
  }
  const double gain = (imbalance - 1) * findings_.balanced * findings_of_;
  const bool pays = imbalance > kStriking || gain > kPaysBack * moved * first_stall_;
  const bool moves = imbalance > kImbalance && pays;
  if (moves) {
    powers_ = balanced;
    for (std::size_t i = 0; i < node_count_; ++i) {
      if (window_.time[i] > 0) rates_[i] = powers_[i];
    }
    ++version_;
  }
  const std::uint32_t length = std::min(2 * window_.length, kLongestWindow);
  window_ = {};
  window_.length = length;
  if (moves) window_.settling = kSettlingRuns;
}

}  // namespace amasia::loops
