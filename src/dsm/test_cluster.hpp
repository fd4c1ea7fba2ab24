// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: N nodes as parts of one process, over the loopback fabric. Each node
// has its managed memory at another base, so "the same address" is a home and an offset.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dsm/dsm.hpp"
#include "fabric/fabric.hpp"

namespace amasia::dsm {

class TestCluster {
 public:
  static constexpr std::uintptr_t kBase = kManagedBase;
  static constexpr std::uintptr_t kApart = 32 * base::kGiB;

  explicit TestCluster(std::uint32_t node_count, const Engine::Settings& settings = {})
      : network_(fabric::make_loopback(node_count)) {
    for (std::uint32_t k = 0; k < node_count; ++k) {
      const NodeId node{static_cast<NodeId::representation>(k)};
      spaces_.push_back(std::make_unique<AddressSpace>());
      const EarlyOutcome mapped = spaces_[k]->map({.self = node,
                                                   .node_count = node_count,
                                                   .base = kBase + k * kApart,
                                                   .span = node_count * base::kGiB,
                                                   .globals_span = base::kGiB});
      AMASIA_CHECK(mapped.ok(), "a test cluster needs its addresses");
    }
    for (std::uint32_t k = 0; k < node_count; ++k) {
      const NodeId node{static_cast<NodeId::representation>(k)};
      blocks_.push_back(std::make_unique<BlockBounds>());
      AMASIA_CHECK(blocks_[k]->start(spaces_[k]->heap(node)) == 0, "a test cluster needs memory");
      Engine::Settings own = settings;
      own.blocks = blocks_[k].get();
      auto engine = Engine::make(*spaces_[k], network_->fabric(node), own);
      if (!engine.ok()) {
        base::log_line(base::LogLevel::kError, "{}", engine.error().message);
        AMASIA_CHECK(false, "a test cluster needs userfaultfd");
      }
      engines_.push_back(std::move(engine).value());
    }
    for (auto& engine : engines_) AMASIA_CHECK(engine->start().ok(), "a thread");
  }
  ~TestCluster() {
    for (auto& engine : engines_) engine->shutdown();
    engines_.clear();
    for (auto& space : spaces_) space->release();
  }
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  std::uint32_t size() const { return static_cast<std::uint32_t>(engines_.size()); }
  Engine& engine(std::uint32_t node) { return *engines_[node]; }

  // A large block of the heap of `home`.
  void note_block(std::uint32_t home, Bytes offset, Bytes size) {
    blocks_[home]->note(at<std::byte>(home, home, offset), size);
  }

  // Where `node` sees byte `offset` of the heap of `home`.
  template <typename T>
  T* at(std::uint32_t node, std::uint32_t home, Bytes offset = 0) {
    const AddressRange heap =
        spaces_[node]->heap(NodeId{static_cast<NodeId::representation>(home)});
    AMASIA_CHECK(offset + sizeof(T) <= heap.size(), "an offset beyond the arena");
    return reinterpret_cast<T*>(heap.begin + offset);
  }

 private:
  std::unique_ptr<fabric::LoopbackNetwork> network_;
  std::vector<std::unique_ptr<AddressSpace>> spaces_;
  std::vector<std::unique_ptr<BlockBounds>> blocks_;  // never given back: a few KiB each
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace amasia::dsm
