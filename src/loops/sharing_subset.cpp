// SPDX-License-Identifier: Apache-2.0
// The sharing model's part about sets of nodes: the more take part, the less each has to do, and
// the longer it takes to fork and join them.
#include <algorithm>
#include <utility>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

// What a smaller set has to promise: less is within the error, and nodes that are left out are not
// heard of for a while.
constexpr double kWorthLeavingOut = 0.95;
constexpr std::uint32_t kRunsBeforeReturn = 64;
// Executions of the same nodes in a row, of whose times to fork and join the least counts: threads
// that the system wakes late, and data that still come, are no reason to leave a node out for long.
constexpr std::uint32_t kRunsBeforeDrop = 8;

}  // namespace

std::size_t SharingModel::nodes_in_use() const {
  return static_cast<std::size_t>(
      std::count_if(powers_.begin(), powers_.begin() + static_cast<std::ptrdiff_t>(node_count_),
                    [](double power) { return power > 0; }));
}

// Leaves out nodes that would cost more than they save, all at once: of the origin and the 1, 2, …
// others that are fastest, the set with
//   least time = 1 / sum rate_i + rest_1 * others,   rest_1 = rest / (others that took part).
// Findings are then those that the smaller set promises.
void SharingModel::leave_out_costly(std::span<const RegionPart> nodes) {
  std::array<std::size_t, base::kMaxNodes> order{};
  std::array<double, base::kMaxNodes> rate{};
  std::size_t others = 0;
  for (std::size_t i = 0; i < node_count_; ++i) {
    const RegionPart& node = nodes[i];
    const auto time = static_cast<double>(node.busy) + static_cast<double>(node.stall);
    if (node.threads == 0 || node.work <= 0 || time <= 0) continue;
    rate[i] = node.work / time;
    if (i > 0) order[others++] = i;
  }
  if (others < 2 || rate[0] <= 0) return;
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(others),
            [&rate](std::size_t a, std::size_t b) {
              return rate[a] > rate[b] || (rate[a] == rate[b] && a < b);
            });
  const double rest = findings_.rest / static_cast<double>(others);
  double sum = rate[0], all = 0, least = 0;
  std::size_t kept = others;
  for (std::size_t used = 1; used <= others; ++used) {
    sum += rate[order[used - 1]];
    all = 1 / sum + rest * static_cast<double>(used);
    if (used > 1 && all >= least) continue;
    least = all;
    kept = used;
  }
  if (kept == others || least >= kWorthLeavingOut * all) return;
  for (std::size_t i = kept; i < others; ++i) {
    const std::size_t node = order[i];
    if (rates_[node] <= 0) rates_[node] = powers_[node];
    powers_[node] = 0;
  }
  ++version_;
  runs_since_drop_ = 0;
  window_ = {};
  findings_.rest = rest * static_cast<double>(kept);
  findings_.balanced = least;
  findings_.shared = least + findings_.charged;
}

void SharingModel::leave_out(std::span<const bool> idle) {
  AMASIA_CHECK(idle.size() == node_count_, "each node of the job is idle or not");
  if (rule_ != Rule::kPrediction || (phase_ != Phase::kWarm && phase_ != Phase::kShared)) return;
  if (with_others_) return;
  bool any = false;
  for (std::size_t i = 1; i < node_count_; ++i) {
    if (!idle[i] || powers_[i] <= 0) continue;
    if (rates_[i] <= 0) rates_[i] = powers_[i];
    powers_[i] = 0;
    any = true;
  }
  if (!any) return;
  ++version_;
  runs_since_drop_ = 0;
  window_ = {};
  if (nodes_in_use() < 2) go_alone();
}

// A node that saves less time than it takes to fork and join it.
void SharingModel::drop_useless(std::span<const RegionPart> nodes, double rest) {
  const std::size_t used = nodes_in_use();
  if (used < 2) return go_alone();
  if (used < node_count_ && ++runs_since_drop_ >= kRunsBeforeReturn * patience_ &&
      runs_since_drop_ * findings_.shared * kBudget >= tried_ - 2 * findings_.shared) {
    // Times change: all are asked again, which costs what it did the last time.
    for (std::size_t i = 0; i < node_count_; ++i) {
      if (powers_[i] == 0) powers_[i] = rates_[i];
    }
    ++version_;
    runs_since_drop_ = 0;
    patience_ = std::min(patience_ * 2, 1e6);
    ++beginnings_;
    return enter(Phase::kCold);
  }
  if (runs_in_phase_ == 0 || joins_.nodes != used) joins_ = {used, 0, rest};
  joins_.least_rest = std::min(joins_.least_rest, rest);
  if (++joins_.runs < kRunsBeforeDrop) return;
  const double cost = std::exchange(joins_, {}).least_rest / static_cast<double>(used - 1);
  double sum = 0;
  for (std::size_t i = 0; i < node_count_; ++i) sum += powers_[i];
  const double work_time = findings_.balanced - findings_.rest;
  std::size_t least = 0;
  for (std::size_t i = 1; i < node_count_; ++i) {
    if (powers_[i] <= 0 || nodes[i].threads == 0) continue;
    if (least == 0 || powers_[i] < powers_[least]) least = i;
  }
  if (least == 0) return;
  const double saved = work_time * powers_[least] / (sum - powers_[least]);
  if (saved >= cost) return;
  if (rates_[least] <= 0) rates_[least] = powers_[least];
  powers_[least] = 0;
  ++version_;
  runs_since_drop_ = 0;
  if (used == 2) go_alone();
}

}  // namespace amasia::loops
