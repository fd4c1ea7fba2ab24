// SPDX-License-Identifier: Apache-2.0
#include "loops/probe_cache.hpp"

#include <algorithm>
#include <cmath>

namespace amasia::loops {
namespace {

constexpr double kNewest = 0.5;  // the weight of the last run
// A run is a surprise if it is further from the mean than so many deviations and this part of it.
constexpr double kDeviations = 4, kLeastSurprise = 0.1;
constexpr std::uint32_t kSurprises = 2;
// Speeds stay as they are until one is further off than this part: what moves takes its data along.
constexpr double kSameSpeed = 0.04;

bool are_alike(const NextRun& a, const ProbeDecision& b, std::size_t nodes) {
  for (std::size_t r = 0; r < nodes; ++r) {
    if ((a.speeds[r] == 0) != (b.speeds[r] == 0)) return false;
    const double one = a.speeds[r], other = b.speeds[r];
    if (std::abs(one - other) > kSameSpeed * std::max(one, other)) return false;
  }
  return true;
}

}  // namespace

// Returns whether this is far from what was expected; where speeds are settled it is not counted
// then.
bool ProbeCache::note(NodeEntry& node, const Report& report, bool settled) {
  if (report.iterations == 0) return false;
  const Cost cost = cost_of(report);
  const double faults =
      static_cast<double>(report.faults) / static_cast<double>(report.iterations);
  // Data came along with the first run: the second one's measurement takes its place.
  if (node.runs++ < 2) {
    node.mean = cost;
    node.faults = faults;
    return false;
  }
  const double off = std::abs(cost.total() - node.mean.total());
  const bool surprise = off > kDeviations * node.deviation + kLeastSurprise * node.mean.total();
  if (surprise && settled) return true;
  node.deviation += kNewest * (off - node.deviation);
  node.mean.compute += kNewest * (cost.compute - node.mean.compute);
  node.mean.stall += kNewest * (cost.stall - node.mean.stall);
  node.faults += kNewest * (faults - node.faults);
  return surprise;
}

void ProbeCache::weigh(Loop& loop, std::span<const std::uint32_t> threads) {
  std::array<NodeSample, base::kMaxNodes> samples;
  bool some = false, all = true;
  for (std::size_t r = 0; r < threads.size(); ++r) {
    samples[r] = {threads[r], loop.nodes[r].mean};
    const bool measured = loop.nodes[r].runs > 0;
    some |= measured;
    all &= measured;
  }
  // What a short run's slowest nodes measured comes with the next one.
  if (!some || (!all && loop.runs < kProbes)) return;
  const ProbeDecision decision = decide_shares({samples.data(), threads.size()}, 1, 0);
  loop.expected_ns = decision.best_ns();
  if (!loop.next.known || !are_alike(loop.next, decision, threads.size())) {
    loop.next.speeds = decision.speeds;
  }
  loop.next.known = loop.runs >= kRetries || decision.nodes_used == threads.size();
}

NextRun ProbeCache::finish(std::uint64_t key, std::span<const std::uint32_t> threads,
                           std::span<const Report> reports) {
  AMASIA_CHECK(threads.size() == reports.size() && threads.size() <= base::kMaxNodes,
               "each node has a report");
  Loop& loop = loops_[key];
  const bool settled = ++loop.runs > kProbes;
  bool surprise = false;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    surprise |= note(loop.nodes[r], reports[r], settled);
  }
  loop.surprises = surprise ? loop.surprises + 1 : 0;
  if (settled) {
    if (loop.surprises < kSurprises) return loop.next;
    loop = Loop{};
    loop.runs = 1;
    for (std::size_t r = 0; r < reports.size(); ++r) note(loop.nodes[r], reports[r], false);
  }
  weigh(loop, threads);
  return loop.next;
}

const ProbeCache::NodeEntry* ProbeCache::find(std::uint64_t key, std::size_t rank) const {
  const auto found = loops_.find(key);
  if (found == loops_.end() || rank >= base::kMaxNodes) return nullptr;
  const NodeEntry& node = found->second.nodes[rank];
  return node.runs > 0 ? &node : nullptr;
}

double ProbeCache::expected_ns(std::uint64_t key) const {
  const auto found = loops_.find(key);
  return found == loops_.end() ? 0 : found->second.expected_ns;
}

}  // namespace amasia::loops
