// SPDX-License-Identifier: Apache-2.0
#include "loops/probe_decision.hpp"

#include <algorithm>

namespace amasia::loops {
namespace {

// A node that would add less than this part of what the best single one does is left out: what it
// is measured to add is within the error, what it costs at the end of the loop is not.
constexpr double kLeastPart = 0.03;

double rate(std::uint32_t threads, double ns) { return ns > 0 ? threads / ns : 0; }

struct Ranking {
  std::array<std::size_t, base::kMaxNodes> ranks;
  std::size_t size = 0;
};

// The nodes but `home` that are worth taking, the one that adds most first.
Ranking rank_others(std::span<const NodeSample> samples, std::size_t home, double least) {
  Ranking others;
  const auto adds = [&samples](std::size_t r) {
    return rate(samples[r].threads, samples[r].cost.total());
  };
  for (std::size_t r = 0; r < samples.size(); ++r) {
    if (r != home && adds(r) > least) others.ranks[others.size++] = r;
  }
  // Of equal ones the lower rank comes first; a stable sort would allocate.
  std::sort(others.ranks.begin(), others.ranks.begin() + others.size,
            [&adds](std::size_t a, std::size_t b) {
              return adds(a) > adds(b) || (adds(a) == adds(b) && a < b);
            });
  return others;
}

}  // namespace

ProbeDecision decide_shares(std::span<const NodeSample> samples, std::uint64_t remaining,
                            std::size_t home) {
  AMASIA_CHECK(home < samples.size() && samples.size() <= base::kMaxNodes, "home is one of them");
  ProbeDecision out;
  const auto iterations = static_cast<double>(remaining);
  double best_single = rate(samples[home].threads, samples[home].cost.compute);
  out.single = home;
  for (std::size_t r = 0; r < samples.size(); ++r) {
    if (r == home) continue;
    const double alone = rate(samples[r].threads, samples[r].cost.total());
    if (alone <= best_single) continue;
    best_single = alone;
    out.single = r;
  }
  AMASIA_CHECK(best_single > 0, "some node was measured");
  out.single_ns = iterations / best_single;

  const Ranking others = rank_others(samples, home, kLeastPart * best_single);
  double all_others = 0;
  for (std::size_t i = 0; i < others.size; ++i) {
    const NodeSample& node = samples[others.ranks[i]];
    all_others += rate(node.threads, node.cost.total());
  }
  // Each set of the home node and the first `taken` of the others.
  const Cost& own = samples[home].cost;
  double best = 0, best_home_ns = 0, others_rate = 0;
  std::size_t best_taken = 0;
  for (std::size_t taken = 1; taken <= others.size && own.total() > 0; ++taken) {
    const NodeSample& last = samples[others.ranks[taken - 1]];
    others_rate += rate(last.threads, last.cost.total());
    const double home_ns = own.compute + own.stall * (others_rate / all_others);
    const double together = rate(samples[home].threads, home_ns) + others_rate;
    if (together <= best) continue;
    best = together;
    best_home_ns = home_ns;
    best_taken = taken;
  }
  if (best > 0) out.shared_ns = iterations / best;
  if (best <= best_single) {
    out.speeds[out.single] = kFastest;
    out.nodes_used = 1;
    return out;
  }
  double least = best_home_ns;
  for (std::size_t i = 0; i < best_taken; ++i) {
    least = std::min(least, samples[others.ranks[i]].cost.total());
  }
  out.speeds[home] = speed_from(best_home_ns, least);
  for (std::size_t i = 0; i < best_taken; ++i) {
    const std::size_t r = others.ranks[i];
    out.speeds[r] = speed_from(samples[r].cost.total(), least);
  }
  out.nodes_used = best_taken + 1;
  return out;
}

}  // namespace amasia::loops
