// SPDX-License-Identifier: Apache-2.0
// For tests: runs one scenario on every node of a cluster, on each back end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fabric/scenario.hpp"

namespace amasia::fabric {

using MakeScenario = std::function<std::unique_ptr<Scenario>(NodeId self, std::uint32_t nodes)>;

// Each returns the failures, one line for each node that had one.
// `speed`: with a slow link over the back end, if it slows anything.
std::vector<std::string> run_on_loopback(std::uint32_t nodes, const MakeScenario& make,
                                         const base::LinkSpeed& speed = {});
std::vector<std::string> run_on_sim(std::uint32_t nodes, std::uint64_t seed,
                                    const MakeScenario& make);

// What a forked node does; an empty result is success.
using NodeMain = std::function<std::string(Bootstrap& bootstrap)>;
struct ProcessCluster {
  // Called in the parent for each child, e.g. to kill it; may be empty.
  std::function<void(const std::vector<int>& pids)> disturb = {};
  // Called in each child before anything else; may be empty.
  std::function<std::string(NodeId self)> prepare = {};
  // Nodes whose way of ending is not looked at.
  std::vector<NodeId> expendable = {};
};
// Forks the nodes, serves their bootstrap, and waits for all. Call it before this process has
// threads.
std::vector<std::string> run_in_processes(std::uint32_t nodes, const NodeMain& main,
                                          const ProcessCluster& cluster = {});
std::vector<std::string> run_on_ucx(std::uint32_t nodes, const UcxSettings& settings,
                                    const MakeScenario& make, const ProcessCluster& cluster = {},
                                    const base::LinkSpeed& speed = {});

}  // namespace amasia::fabric
