// SPDX-License-Identifier: Apache-2.0
#include "loops/cost_spread.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace amasia::loops {
namespace {

using Pieces = std::array<double, CostSpread::kPieces>;

// A fault takes some of the thread's own time, and leaves its caches cold. Where that may be more
// than this part of the time it is not the iterations' cost.
constexpr double kFaultTime = 5 * base::kMicrosecond, kMostFaults = 0.1;
// What takes less in all may as well have been disturbed.
constexpr double kLeastTime = base::kMillisecond;
// Of the seams of two nodes, so many are to differ by no more than this factor in what they say of
// their speeds.
constexpr double kMost = 0.6, kInAgreement = 1.2;
// That many pieces may lie between them.
constexpr std::size_t kNear = 4;
// What cost lies off its place by less than this part of the loop may be noise: cold caches, and
// pages that come and go, have their part in what is measured.
constexpr double kAboutEven = 0.1;
// So many pieces have to be known.
constexpr std::size_t kLeastKnown = CostSpread::kPieces / 2;

double place_in(std::uint64_t iteration, std::uint64_t count) {
  return static_cast<double>(iteration) / static_cast<double>(count) * CostSpread::kPieces;
}

// Between those that are known (> 0), of which there is one.
void fill_gaps(Pieces& pieces) {
  std::size_t last = pieces.size();
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    if (pieces[k] <= 0) continue;
    const double from = last < k ? pieces[last] : pieces[k];
    const std::size_t begin = last < k ? last + 1 : 0;
    for (std::size_t gap = begin; gap < k; ++gap) {
      const double part = last < k ? static_cast<double>(gap - last) / (k - last) : 1;
      pieces[gap] = from + part * (pieces[k] - from);
    }
    last = k;
  }
  std::fill(pieces.begin() + static_cast<std::ptrdiff_t>(last), pieces.end(), pieces[last]);
}

// Each is the median of itself and its neighbours: one that was disturbed says nothing, while steps
// stay.
Pieces without_spikes(const Pieces& pieces) {
  Pieces smooth = pieces;
  for (std::size_t k = 1; k + 1 < pieces.size(); ++k) {
    const auto [low, high] = std::minmax(pieces[k - 1], pieces[k + 1]);
    smooth[k] = std::clamp(pieces[k], low, high);
  }
  return smooth;
}

}  // namespace

CostSpread::CostSpread(std::span<const double, kPieces> costs) {
  const double sum = std::accumulate(costs.begin(), costs.end(), 0.0);
  const auto is_cost = [](double cost) { return cost > 0; };
  AMASIA_CHECK(std::ranges::all_of(costs, is_cost), "all iterations cost something");
  std::ranges::transform(costs, pieces_.begin(), [sum](double cost) { return cost / sum; });
}

double CostSpread::cost_before(double place) const {
  const double at = std::clamp(place, 0.0, 1.0) * kPieces;
  const auto whole = std::min(static_cast<std::size_t>(at), kPieces - 1);
  const auto here = pieces_.begin() + static_cast<std::ptrdiff_t>(whole);
  return std::accumulate(pieces_.begin(), here, 0.0) + (at - static_cast<double>(whole)) * *here;
}

double CostSpread::place_of(double cost) const {
  double before = 0;
  for (std::size_t k = 0; k < kPieces; ++k) {
    if (before + pieces_[k] >= cost) {
      return (static_cast<double>(k) + std::max(0.0, cost - before) / pieces_[k]) / kPieces;
    }
    before += pieces_[k];
  }
  return 1;
}

void CostSpread::to_iterations(std::span<double> parts) const {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  double cost = 0, from = 0;
  for (double& part : parts) {
    cost += part / sum;
    const double to = part > 0 ? place_of(std::min(cost, 1.0)) : from;
    part = (to - std::exchange(from, to)) * sum;
  }
}

void CostSpread::to_costs(std::span<double> parts) const {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  double place = 0, from = 0;
  for (double& part : parts) {
    place += part / sum;
    const double to = part > 0 ? cost_before(place) : from;
    part = (to - std::exchange(from, to)) * sum;
  }
}

bool CostSpread::agrees(std::span<const double> parts, std::span<const double> times,
                        std::span<const double> speeds) const {
  std::vector<double> costs(parts.begin(), parts.end());
  to_costs(costs);
  // How far times are from what `work` would take, as the greatest factor between two nodes.
  const auto distance = [&](std::span<const double> work) {
    double least = 0, most = 0;
    bool is_first = true;
    for (std::size_t i = 0; i < work.size(); ++i) {
      if (work[i] <= 0 || times[i] <= 0 || speeds[i] <= 0) continue;
      const double off = std::log(times[i] * speeds[i] / work[i]);
      least = is_first ? off : std::min(least, off);
      most = is_first ? off : std::max(most, off);
      is_first = false;
    }
    return most - least;
  };
  return distance(costs) <= distance(parts);
}

void CostSketch::give(std::size_t rank, const Iterations& range) {
  if (!range.empty()) nodes_[rank].given.push_back(range);
}

// The first time there is code to fetch, and caches are cold: that says nothing of iterations.
void CostSketch::tell(std::size_t rank, const Report& report) {
  Node& node = nodes_[rank];
  if (report.iterations == 0) return;
  const bool is_first = !std::exchange(node.has_told, true);
  std::vector<Iterations> runs;
  for (std::uint64_t left = report.iterations; left > 0 && node.next < node.given.size();) {
    const Iterations& range = node.given[node.next];
    const std::uint64_t begin = range.begin + node.done;
    const std::uint64_t size = std::min(left, range.end - begin);
    if (runs.empty() || runs.back().end != begin) runs.push_back({begin, begin});
    runs.back().end += size;
    node.done += size;
    left -= size;
    if (node.done < range.size()) continue;
    ++node.next;
    node.done = 0;
  }
  const double faults = kFaultTime * static_cast<double>(report.faults);
  const bool counts = !is_first && faults <= kMostFaults * static_cast<double>(report.cpu_ns);
  if (counts && !runs.empty()) note(node, runs, static_cast<double>(report.cpu_ns));
}

// Of runs that lie apart nobody says how long each has taken: the first one goes on as before, and
// the rest is the other's.
void CostSketch::note(Node& node, std::span<const Iterations> runs, double ns) const {
  if (runs.size() > 2) return;
  const Iterations& last = runs.back();
  if (runs.size() == 2) {
    const auto at = static_cast<std::size_t>(place_in(runs[0].begin, count_));
    const double before = at > 0 ? std::max(node.density(at), node.density(at - 1)) : 0;
    ns -= before * static_cast<double>(runs[0].size());
    const bool is_clear = before > 0 && ns > 0 && last.size() > runs[0].size();
    if (!is_clear) return;
  }
  note_run(node, last, ns / static_cast<double>(last.size()));
}

void CostSketch::note_run(Node& node, const Iterations& range, double ns_each) const {
  const double from = place_in(range.begin, count_), to = place_in(range.end, count_);
  const double each = static_cast<double>(count_) / CostSpread::kPieces;
  for (auto k = static_cast<std::size_t>(from); k < CostSpread::kPieces; ++k) {
    const double begin = std::max(from, static_cast<double>(k));
    const double size = (std::min(to, static_cast<double>(k + 1)) - begin) * each;
    if (size <= 0) break;
    node.iterations[k] += size;
    node.ns[k] += size * ns_each;
  }
}

// At `to`, from what is known of it at `piece` and on its other side.
double CostSketch::Node::density_near(std::size_t piece, std::size_t to) const {
  const double here = density(piece);
  for (std::size_t far = kNear; far > 0 && piece != to; --far) {
    const bool exists = to > piece ? piece >= far : piece + far < CostSpread::kPieces;
    if (!exists) continue;
    const double behind = density(to > piece ? piece - far : piece + far);
    if (behind <= 0) continue;
    const auto distance = static_cast<double>(std::max(to, piece) - std::min(to, piece));
    const double there = here + (here - behind) * distance / static_cast<double>(far);
    return std::clamp(there, here / 2, here * 2);
  }
  return here;
}

// What the seams between a node and others say: how much dearer iterations are for it, as the
// logarithm of a factor.
struct CostSketch::Seams {
  std::vector<double> ratios;

  // Each of them is held against what the other would have there, as it goes on.
  void meet(const Node& own, std::size_t own_at, const Node& other, std::size_t other_at,
            double scale) {
    const double here = own.density(own_at), there = other.density(other_at) * scale;
    if (here <= 0 || there <= 0) return;
    const double ratio = (std::log(other.density_near(other_at, own_at) * scale / here) +
                          std::log(there / own.density_near(own_at, other_at))) /
                         2;
    ratios.push_back(ratio);
  }
  // Wherever one of them is known next to the other, or in the same piece.
  void look(const Node& own, const Node& other, double scale) {
    std::size_t last = 0;  // that is known
    for (std::size_t k = 0; k < CostSpread::kPieces; ++k) {
      const bool here = own.density(k) > 0, theirs = other.density(k) > 0;
      if (!here && !theirs) continue;
      if (here && theirs) meet(own, k, other, k, scale);
      if (k - last <= kNear && !here) meet(own, last, other, k, scale);
      if (k - last <= kNear && !theirs) meet(own, k, other, last, scale);
      last = k;
    }
  }
  // The middle one, if most agree with it.
  std::optional<double> scale() {
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::ranges::nth_element(ratios, middle);
    const auto agrees = [middle = *middle](double ratio) {
      return std::abs(ratio - middle) <= std::log(kInAgreement);
    };
    const auto agreeing = static_cast<double>(std::ranges::count_if(ratios, agrees));
    if (agreeing < kMost * static_cast<double>(ratios.size())) return std::nullopt;
    return std::exp(*middle);
  }
};

// What a node's times are to be multiplied by, for all to be the origin's; by rank. A node that is
// no neighbour of those has none (0).
std::optional<std::vector<double>> CostSketch::scales() const {
  std::vector<double> scales(nodes_.size(), 0);
  scales[0] = 1;
  for (bool found = true; found;) {
    found = false;
    for (std::size_t rank = 1; rank < nodes_.size(); ++rank) {
      if (scales[rank] > 0) continue;
      Seams seams;
      for (std::size_t other = 0; other < nodes_.size(); ++other) {
        if (scales[other] > 0) seams.look(nodes_[rank], nodes_[other], scales[other]);
      }
      if (seams.ratios.empty()) continue;
      const std::optional<double> scale = seams.scale();
      if (!scale.has_value()) return std::nullopt;
      scales[rank] = *scale;
      found = true;
    }
  }
  return scales;
}

std::optional<CostSpread> CostSketch::spread() const {
  if (nodes_.empty()) return std::nullopt;
  const std::optional<std::vector<double>> scale = scales();
  if (!scale.has_value()) return std::nullopt;
  Pieces costs{};
  double time = 0;
  std::size_t known = 0;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    double ns = 0, iterations = 0;
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      if ((*scale)[rank] <= 0) continue;
      ns += nodes_[rank].ns[k] * (*scale)[rank];
      iterations += nodes_[rank].iterations[k];
    }
    if (ns <= 0) continue;
    costs[k] = ns / iterations;
    time += ns;
    ++known;
  }
  if (time < kLeastTime || known < kLeastKnown) return std::nullopt;
  fill_gaps(costs);
  const CostSpread spread(without_spikes(costs));
  for (std::size_t k = 1; k < costs.size(); ++k) {
    const double place = static_cast<double>(k) / CostSpread::kPieces;
    if (std::abs(spread.cost_before(place) - place) > kAboutEven) return spread;
  }
  return std::nullopt;
}

std::vector<double> CostSketch::parts_given(const CostSpread& spread) const {
  std::vector<double> parts(nodes_.size(), 0);
  const auto before = [&](std::uint64_t iteration) {
    return spread.cost_before(place_in(iteration, count_) / CostSpread::kPieces);
  };
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    for (const Iterations& range : nodes_[rank].given) {
      parts[rank] += before(range.end) - before(range.begin);
    }
  }
  return parts;
}

}  // namespace amasia::loops
