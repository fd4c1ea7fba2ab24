// SPDX-License-Identifier: Apache-2.0
#include "loops/single_node.hpp"

#include "base/base.hpp"

namespace amasia::loops {

double alone_on(std::span<const SingleNode> nodes, std::size_t node,
                std::optional<double> misses_per_kilo) {
  AMASIA_CHECK(node < nodes.size(), "it is one of the job's nodes");
  if (nodes[node].alone_ns > 0) return nodes[node].alone_ns;
  const bool computes = misses_per_kilo && *misses_per_kilo < kMissesOfMemoryBound;
  if (!computes || nodes[node].throughput <= 0) return 0;
  return nodes[0].alone_ns * nodes[0].throughput / nodes[node].throughput;
}

double alone_by_rest(std::span<const SingleNode> nodes, std::size_t node, double here) {
  AMASIA_CHECK(node < nodes.size(), "it is one of the job's nodes");
  const SingleNode& origin = nodes[0];
  const double others = 1 - origin.part;  // of the work
  const double rest = here - origin.part * origin.alone_ns;
  if (origin.part <= 0 || others <= 0 || rest <= 0 || nodes[node].alone_ns <= 0) return here;
  return here * nodes[node].alone_ns / (rest / others);
}

std::size_t choose_by_counters(std::span<const SingleNode> nodes,
                               std::optional<double> misses_per_kilo) {
  AMASIA_CHECK(!nodes.empty(), "a job has a node");
  if (!misses_per_kilo) return 0;
  const bool computes = *misses_per_kilo < kMissesOfMemoryBound;
  const auto worth = [computes](const SingleNode& node) {
    if (node.throughput <= 0) return 0.0;
    return computes ? node.throughput : node.core_speed;
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (worth(nodes[i]) > worth(nodes[best])) best = i;
  }
  return best;
}

}  // namespace amasia::loops
