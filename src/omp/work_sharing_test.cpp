// SPDX-License-Identifier: Apache-2.0
// Loops of teams of several nodes over the loopback fabric, without a runtime below: the test's own
// threads are the team's.
#include "omp/work_sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "omp/node.hpp"

namespace amasia::omp {
namespace {

class TestServices final : public Services {
 public:
  explicit TestServices(fabric::Fabric& fabric) : fabric_(fabric) {}
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

class Job {
 public:
  explicit Job(std::vector<std::uint32_t> threads)
      : network_(fabric::make_loopback(static_cast<std::uint32_t>(threads.size()))) {
    std::uint32_t offset = 0;
    for (std::uint16_t id = 0; id < threads.size(); ++id) {
      shares_.push_back({NodeId{id}, threads[id], offset});
      offset += threads[id];
    }
    NodeSettings settings;
    settings.capacity = threads;
    for (std::uint16_t id = 0; id < threads.size(); ++id) {
      fabric::Fabric& fabric = network_->fabric(NodeId{id});
      parts_.push_back(std::make_unique<Part>(fabric, settings));
    }
  }

  // Runs `function(frame, sharing)` on every thread of a region.
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
        threads.emplace_back([&, id, offset = shares_[rank].offset] {
          ThreadFrame frame;
          frame.team = &part.node.team();
          frame.local_id = id;
          frame.global_id = offset + id;
          function(frame, part.sharing);
        });
      }
    }
  }
  WorkSharing& sharing(std::size_t node) { return parts_[node]->sharing; }

 private:
  struct Part {
    Part(fabric::Fabric& fabric, const NodeSettings& settings)
        : services(fabric), node(fabric, services, settings), sharing(node) {
      poller = std::jthread([&fabric](std::stop_token stop) {
        while (!stop.stop_requested()) {
          fabric::wait_and_poll(fabric, 8, 0, base::kMillisecond);
        }
      });
    }
    TestServices services;
    Node node;
    WorkSharing sharing;
    std::jthread poller;  // ends first
  };
  std::unique_ptr<fabric::LoopbackNetwork> network_;
  std::vector<NodeShare> shares_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::uint32_t region_ = 0;
};

struct Loop {
  loops::Space space;
  loops::ScheduleRequest schedule;
};

std::vector<Loop> random_loops(std::mt19937& random) {
  std::vector<Loop> loops;
  for (int i = 0; i < 12; ++i) {
    const auto kind = static_cast<loops::ScheduleKind>(random() % loops::kScheduleKinds);
    loops.push_back({{0, 1, random() % (i % 3 == 0 ? 5 : 400)}, {kind, random() % 6}});
  }
  return loops;
}

// No barrier between the loops: fast threads run ahead, on their node and on others.
TEST(WorkSharing, LoopsInARowGiveEveryIterationOnce) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> threads(1 + random() % 4);
    for (auto& n : threads) n = 1 + random() % 3;
    Job job(threads);
    for (int region = 0; region < 4; ++region) {
      const std::vector<Loop> loops = random_loops(random);
      std::vector<std::vector<std::atomic<int>>> runs;
      for (const Loop& loop : loops) runs.emplace_back(loop.space.count);
      job.region([&](ThreadFrame& frame, WorkSharing& sharing) {
        for (std::size_t i = 0; i < loops.size(); ++i) {
          sharing.begin(frame, loops[i].space, loops[i].schedule);
          std::uint64_t last = 0;
          for (loops::Iterations range; sharing.next(frame, range);) {
            EXPECT_FALSE(range.empty());
            EXPECT_GE(range.begin, last);
            last = range.end;
            for (auto n = range.begin; n < range.end; ++n) runs[i][n].fetch_add(1);
          }
        }
      });
      for (std::size_t i = 0; i < loops.size(); ++i) {
        for (const auto& count : runs[i]) ASSERT_EQ(count.load(), 1) << "seed " << seed;
      }
    }
  }
}

TEST(WorkSharing, ShortLoopsNeedNoMessage) {
  Job job({1, 1});
  job.region([](ThreadFrame& frame, WorkSharing& sharing) {
    sharing.begin(frame, {0, 1, 2}, {loops::ScheduleKind::kDynamic, 1});
    int taken = 0;
    for (loops::Iterations range; sharing.next(frame, range);) ++taken;
    EXPECT_EQ(taken, 1);
  });
  EXPECT_EQ(job.sharing(0).refills() + job.sharing(1).refills(), 0u);
}

}  // namespace
}  // namespace amasia::omp
