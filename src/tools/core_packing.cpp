// SPDX-License-Identifier: Apache-2.0
#include "tools/core_packing.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/base.hpp"

namespace amasia::tools {
namespace {

constexpr double kRounding = 1e-9;
constexpr std::size_t kMostSteps = 200 * 1000;

// Branch and bound: the largest share first, onto the emptiest core first, so that the first
// packing that it finds is that of longest-first.
class Search {
 public:
  Search(std::span<const double> shares, std::size_t cores)
      : shares_(shares), order_(shares.size()), loads_(cores), core_of_(shares.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
    });
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    least_ = std::max(total / static_cast<double>(cores), shares[order_.front()]);
  }

  void place(std::size_t next) {
    if (next == order_.size()) {
      most_ = *std::max_element(loads_.begin(), loads_.end());
      best_ = core_of_;
      return;
    }
    const std::size_t node = order_[next];
    std::vector<std::size_t> cores(loads_.size());
    std::iota(cores.begin(), cores.end(), std::size_t{0});
    std::sort(cores.begin(), cores.end(), [&](std::size_t a, std::size_t b) {
      return loads_[a] != loads_[b] ? loads_[a] < loads_[b] : a < b;
    });
    double last = -1;
    for (const std::size_t core : cores) {
      if (most_ <= least_ + kRounding || (!best_.empty() && ++steps_ > kMostSteps)) return;
      if (loads_[core] + shares_[node] >= most_ - kRounding) return;  // those after it are fuller
      if (loads_[core] == last) continue;                             // as the one before
      last = loads_[core];
      loads_[core] += shares_[node];
      core_of_[node] = core;
      place(next + 1);
      loads_[core] = last;
    }
  }

  double most() const { return most_; }
  const std::vector<std::size_t>& best() const { return best_; }

 private:
  std::span<const double> shares_;
  std::vector<std::size_t> order_;
  std::vector<double> loads_;
  std::vector<std::size_t> core_of_, best_;
  double least_ = 0;  // no packing can be better
  double most_ = std::numeric_limits<double>::max();
  std::size_t steps_ = 0;
};

}  // namespace

std::vector<double> CorePacking::loads(std::size_t cores) const {
  std::vector<double> out(cores);
  for (std::size_t node = 0; node < shares.size(); ++node) out[core_of[node]] += shares[node];
  return out;
}

CorePacking pack_shares(std::span<const double> shares, std::size_t cores) {
  AMASIA_CHECK(!shares.empty() && cores > 0, "there are nodes, and cores to run them");
  Search search(shares, cores);
  search.place(0);
  CorePacking out;
  if (search.most() > 1 + kRounding) out.scale = 1 / search.most();
  std::vector<std::size_t> renumbered(cores, cores);
  std::size_t used = 0;
  for (std::size_t node = 0; node < shares.size(); ++node) {
    std::size_t& core = renumbered[search.best()[node]];
    if (core == cores) core = used++;
    out.core_of.push_back(core);
    out.shares.push_back(shares[node] * out.scale);
  }
  return out;
}

}  // namespace amasia::tools
