// SPDX-License-Identifier: Apache-2.0
// Which tasks wait for which (paper, section 2.1). Pure. Holds only tasks that have not ended.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace amasia::devices {

class TaskGraph {
 public:
  // Adds `task`; of `dependencies` those count that are in the graph, each once. True: it waits for
  // none and is ready.
  bool add(std::uint64_t task, std::span<const std::uint64_t> dependencies);

  struct Consequences {
    std::vector<std::uint64_t> ready;
    // Tasks that can never run, with the task that they failed for; they have left the graph too.
    // In order: who depends on whom comes later.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> failed;
  };
  // `task`, which is ready, has ended.
  Consequences end(std::uint64_t task, bool succeeded);
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::size_t waits_for = 0;
    std::vector<std::uint64_t> dependents;
  };
  std::unordered_map<std::uint64_t, Node> nodes_;
};

}  // namespace amasia::devices
