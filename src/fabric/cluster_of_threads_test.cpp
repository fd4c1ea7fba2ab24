// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "fabric/test_cluster.hpp"

namespace amasia::fabric {

std::vector<std::string> run_on_loopback(std::uint32_t nodes, const MakeScenario& make) {
  const auto network = make_loopback(nodes);
  std::vector<std::unique_ptr<Scenario>> scenarios;
  for (std::uint16_t node = 0; node < nodes; ++node) scenarios.push_back(make(NodeId(node), nodes));
  std::vector<std::thread> threads;
  for (std::uint16_t node = 0; node < nodes; ++node) {
    threads.emplace_back([&, node] { play(network->fabric(NodeId(node)), *scenarios[node]); });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::string> failures;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::string& failure = scenarios[node]->failure();
    if (!failure.empty()) failures.push_back(fmt::format("node {}: {}", node, failure));
  }
  return failures;
}

std::vector<std::string> run_on_sim(std::uint32_t nodes, std::uint64_t seed,
                                    const MakeScenario& make) {
  SimSettings settings;
  settings.node_count = nodes;
  settings.seed = seed;
  settings.slowness[nodes - 1] = 10;
  const auto network = make_sim(settings);
  std::vector<std::unique_ptr<Scenario>> scenarios;
  for (std::uint16_t node = 0; node < nodes; ++node) {
    scenarios.push_back(make(NodeId(node), nodes));
    scenarios.back()->attach(network->fabric(NodeId(node)));
  }
  while (network->run(1000) != 0) {
  }
  std::vector<std::string> failures;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!scenarios[node]->is_done()) scenarios[node]->fail("is not done and nothing is on its way");
    const std::string& failure = scenarios[node]->failure();
    if (!failure.empty()) {
      failures.push_back(fmt::format("seed {}: node {}: {}", seed, node, failure));
    }
  }
  return failures;
}

}  // namespace amasia::fabric
