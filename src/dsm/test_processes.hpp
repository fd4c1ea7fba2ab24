// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: N nodes as forked processes, with managed memory at its true base and
// messages over UCX.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <string>

#include "dsm/dsm.hpp"
#include "fabric/fabric.hpp"

namespace amasia::dsm {

// Memory that all processes share outside managed memory: to meet, and to report figures.
struct SharedBoard {
  std::atomic<std::uint64_t> arrived{0};
  std::array<std::array<std::atomic<std::uint64_t>, 64>, 8> figures{};  // by node
};

// What the body of a node gets.
struct ProcessNode {
  AddressSpace& space;
  fabric::Fabric& fabric;
  Engine& engine;
  SharedBoard& board;

  std::uint32_t self() const { return space.self().value; }
  std::uint32_t count() const { return space.node_count(); }
  template <typename T>
  T* at(std::uint32_t home, Bytes offset = 0) const {
    const auto node = NodeId{static_cast<NodeId::representation>(home)};
    return reinterpret_cast<T*>(space.heap(node).begin + offset);
  }
  // Waits for all nodes, on the board: no managed memory, no message.
  void meet() const;
};

struct ProcessSettings {
  Engine::Settings engine;
  std::string transports;  // of UCX
  // For handlers of a benchmark's own, set before the engine polls.
  std::function<void(fabric::Fabric&)> before_start{};
  AddressRange globals{};          // made managed before the engine
  bool pin_to_cores = false;       // node k to core k modulo the cores there are
  unsigned lifetime_seconds = 60;  // then a hanging node is killed
};

// Forks `count` nodes, runs `body` on each, and waits for all. Returns "" or what went wrong. Call
// it before this process has threads. `after` sees the board in the end.
std::string run_processes(std::uint32_t count, const ProcessSettings& settings,
                          const std::function<void(const ProcessNode&)>& body,
                          const std::function<void(SharedBoard&)>& after = {});

}  // namespace amasia::dsm
