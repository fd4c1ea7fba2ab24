// SPDX-License-Identifier: Apache-2.0
// For tests: teams of several nodes over the loopback fabric, without a runtime below: the test's
// own threads are the team's. Work-sharing constructs work, barriers do not.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "omp/node.hpp"
#include "omp/work_sharing/doacross.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

class LoopbackServices final : public Services {
 public:
  explicit LoopbackServices(fabric::Fabric& fabric) : fabric_(fabric) {}
  Result<ManagedStack> acquire_stack() override { return ManagedStack{&byte_, &byte_}; }
  int help() override { return static_cast<int>(fabric_.poll(8)); }
  [[noreturn]] void abort_job(std::string_view why) override {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(why.size()), why.data());
    std::abort();
  }

 private:
  fabric::Fabric& fabric_;
  std::byte byte_{};
};

class LoopbackJob {
 public:
  explicit LoopbackJob(std::vector<std::uint32_t> threads, const LoopSettings& loops = {})
      : network_(fabric::make_loopback(static_cast<std::uint32_t>(threads.size()))) {
    std::uint32_t offset = 0;
    for (std::uint16_t id = 0; id < threads.size(); ++id) {
      shares_.push_back({NodeId{id}, threads[id], offset});
      offset += threads[id];
    }
    NodeSettings settings;
    settings.capacity = threads;
    settings.core_speeds.assign(threads.size(), 1.0);
    for (std::uint16_t id = 0; id < threads.size(); ++id) {
      fabric::Fabric& fabric = network_->fabric(NodeId{id});
      parts_.push_back(std::make_unique<Part>(fabric, settings, loops));
    }
  }

  // Runs `function(frame)` on every thread of a region.
  template <typename Function>
  void region(Function function) {
    ++region_;
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < shares_.size(); ++rank) {
      Part& part = *parts_[rank];
      Team::Begin begin;
      begin.region = region_;
      begin.rank = rank;
      begin.shares = shares_;
      part.node.team().begin(begin);
      for (std::uint32_t id = 0; id < shares_[rank].threads; ++id) {
        threads.emplace_back([&, id] {
          ThreadFrame frame;
          part.node.team().enlist(frame, id);
          function(frame);
        });
      }
    }
  }
  // By rank, for regions to come.
  void set_speeds(const std::vector<std::uint32_t>& speeds) {
    for (std::size_t r = 0; r < shares_.size(); ++r) shares_[r].speed = speeds[r];
  }
  WorkSharing& sharing(std::size_t node) { return parts_[node]->sharing; }

 private:
  struct Part {
    Part(fabric::Fabric& fabric, const NodeSettings& settings, const LoopSettings& loops)
        : services(fabric),
          node(fabric, services, settings),
          sharing(node, loops),
          turns(node),
          doacross(node) {
      node.set_work_sharing(&sharing);
      node.set_turns(&turns);
      node.set_doacross(&doacross);
      poller = std::jthread([&fabric](std::stop_token stop) {
        while (!stop.stop_requested()) {
          fabric::wait_and_poll(fabric, 8, 0, base::kMillisecond);
        }
      });
    }
    LoopbackServices services;
    Node node;
    WorkSharing sharing;
    Turns turns;
    Doacross doacross;
    std::jthread poller;  // ends first
  };
  std::unique_ptr<fabric::LoopbackNetwork> network_;
  std::vector<NodeShare> shares_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::uint32_t region_ = 0;
};

}  // namespace amasia::omp
