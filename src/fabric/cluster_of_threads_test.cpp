// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "fabric/test_cluster.hpp"

namespace amasia::fabric {

std::vector<std::string> run_on_loopback(std::uint32_t nodes, const MakeScenario& make,
                                         const base::LinkSpeed& speed) {
  const auto network = make_loopback(nodes);
  // They outlive the scenarios: threads of a scenario may send until it is gone.
  std::vector<std::unique_ptr<Fabric>> slow_links;
  std::vector<std::unique_ptr<Scenario>> scenarios;
  for (std::uint16_t node = 0; node < nodes; ++node) {
    scenarios.push_back(make(NodeId(node), nodes));
    if (!speed.is_slowed()) continue;
    auto link = make_slow_link(network->fabric(NodeId(node)), speed);
    AMASIA_CHECK(link.ok(), "a slow link has its descriptors");
    slow_links.push_back(std::move(link).value());
  }
  std::vector<std::thread> threads;
  for (std::uint16_t node = 0; node < nodes; ++node) {
    threads.emplace_back([&, node] {
      play(speed.is_slowed() ? *slow_links[node] : network->fabric(NodeId(node)),
           *scenarios[node]);
    });
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
