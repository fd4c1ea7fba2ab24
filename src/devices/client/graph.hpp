// SPDX-License-Identifier: Apache-2.0
// Which tasks wait for which (paper, section 2.1). Pure. Holds only tasks that wait or are waited
// for: brief ones, of which there are many a second, mostly do neither.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "os/os.hpp"

namespace amasia::devices {

class TaskGraph {
 public:
  // `task`, which was not added before, depends on these, none of which has ended; each counts
  // once. True: it waits for none and is ready.
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
  os::BlockMap<std::uint64_t, Node> nodes_;
};

}  // namespace amasia::devices
