// SPDX-License-Identifier: Apache-2.0
// The sharing model's part about sets of nodes: the more take part, the less each has to do, and
// the longer it takes to fork and join them.
#include <algorithm>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

// What a smaller set has to promise: less is within the error, and nodes that are left out are not
// heard of for a while.
constexpr double kWorthLeavingOut = 0.95;

}  // namespace

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

}  // namespace amasia::loops
