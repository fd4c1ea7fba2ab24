// SPDX-License-Identifier: Apache-2.0
#include "devices/client/graph.hpp"

#include <algorithm>

#include "base/base.hpp"

namespace amasia::devices {

bool TaskGraph::add(std::uint64_t task, std::span<const std::uint64_t> dependencies) {
  if (dependencies.empty()) return true;
  std::vector<std::uint64_t> distinct(dependencies.begin(), dependencies.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const std::uint64_t dependency : distinct) nodes_[dependency].dependents.push_back(task);
  const bool added = nodes_.emplace(task, Node{distinct.size(), {}}).second;
  AMASIA_CHECK(added, "a task is added twice");
  return false;
}

TaskGraph::Consequences TaskGraph::end(std::uint64_t task, bool succeeded) {
  Consequences out;
  if (nodes_.empty()) return out;
  auto node = nodes_.extract(task);
  if (node.empty()) return out;
  AMASIA_CHECK(node.mapped().waits_for == 0, "a task ends that is not ready");
  if (succeeded) {
    for (const std::uint64_t dependent : node.mapped().dependents) {
      const auto found = nodes_.find(dependent);
      if (found == nodes_.end()) continue;  // failed for another one
      if (--found->second.waits_for == 0) out.ready.push_back(dependent);
    }
    return out;
  }
  std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> left;
  left.emplace_back(task, std::move(node.mapped().dependents));
  while (!left.empty()) {
    auto [because, dependents] = std::move(left.back());
    left.pop_back();
    for (const std::uint64_t dependent : dependents) {
      auto failing = nodes_.extract(dependent);
      if (failing.empty()) continue;
      out.failed.emplace_back(dependent, because);
      left.emplace_back(dependent, std::move(failing.mapped().dependents));
    }
  }
  return out;
}

}  // namespace amasia::devices
