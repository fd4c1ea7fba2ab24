// SPDX-License-Identifier: Apache-2.0
// The promises F1 to F5, held on each back end by the same bodies.
#include "fabric/fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "fabric/test_cluster.hpp"

namespace amasia::fabric {
namespace {

enum class BackEnd { kLoopback, kSim, kUcx, kUcxTcp, kSlowLoopback, kSlowUcx };

constexpr base::LinkSpeed kSlow{.latency = 200 * base::kMicrosecond, .bytes_per_ns = 1};

struct Setting {
  BackEnd back_end;
  std::uint32_t nodes;
};

std::string name_of(const testing::TestParamInfo<Setting>& info) {
  const char* const names[] = {"Loopback", "Sim", "Ucx", "UcxTcp", "SlowLoopback", "SlowUcx"};
  return fmt::format("{}{}", names[static_cast<int>(info.param.back_end)], info.param.nodes);
}

std::vector<std::string> run(const Setting& setting, const MakeScenario& make) {
  UcxSettings ucx;
  switch (setting.back_end) {
    case BackEnd::kLoopback:
      return run_on_loopback(setting.nodes, make);
    case BackEnd::kSim: {
      std::vector<std::string> failures;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto some = run_on_sim(setting.nodes, seed, make);
        failures.insert(failures.end(), some.begin(), some.end());
      }
      return failures;
    }
    case BackEnd::kUcxTcp:
      ucx.transports = "tcp";
      [[fallthrough]];
    case BackEnd::kUcx:
      return run_on_ucx(setting.nodes, ucx, make);
    case BackEnd::kSlowLoopback:
      return run_on_loopback(setting.nodes, make, kSlow);
    case BackEnd::kSlowUcx:
      return run_on_ucx(setting.nodes, ucx, make, {}, kSlow);
  }
  return {"unknown back end"};
}

class OnEachBackEnd : public testing::TestWithParam<Setting> {};

#define EXPECT_NO_FAILURE(expression) \
  for (const std::string& failure : (expression)) ADD_FAILURE() << failure

constexpr MessageType kData = 0x100;

// A stream of messages of mixed sizes, whose size and content follow from (from, to, number).
struct Numbered {
  std::uint32_t number;
  std::uint32_t size;
};

std::uint32_t size_of(std::uint32_t number) {
  constexpr std::array<std::uint32_t, 12> kSizes = {0,    1,    8,     4096,   17,   65536,
                                                    2047, 2048, 12345, 262144, 4097, 2097152};
  return kSizes[number % kSizes.size()];
}

std::byte fill_of(NodeId from, NodeId to, std::uint32_t number) {
  return static_cast<std::byte>(from.value * 7 + to.value * 31 + number);
}

// F1 with sizes that take every path of the back end, self-sends included.
class OrderedStreams final : public Scenario {
 public:
  OrderedStreams(NodeId self, std::uint32_t nodes, std::uint32_t count)
      : self_(self), count_(count), expected_(nodes, 0) {}

  void start(Fabric& fabric) override {
    std::vector<std::byte> payload(2 * base::kMiB);
    for (std::uint32_t number = 0; number < count_; ++number) {
      for (std::uint16_t to = 0; to < expected_.size(); ++to) {
        const Numbered head{number, size_of(number)};
        const auto body = std::span(payload).first(head.size);
        std::fill(body.begin(), body.end(), fill_of(self_, NodeId(to), number));
        if (!fabric.send(NodeId(to), kData, bytes_of(head), body)) fail("cannot send");
      }
    }
  }

  void on_message(const Incoming& message) override {
    Numbered head;
    if (reinterpret_cast<std::uintptr_t>(message.body.data()) % 8 != 0) fail("not aligned");
    if (message.body.size() < sizeof head) return fail("too short");
    std::memcpy(&head, message.body.data(), sizeof head);
    std::uint32_t& expected = expected_[message.from.value];
    if (head.number != expected++) {
      return fail(
          fmt::format("message {} of node {} is out of order", head.number, message.from.value));
    }
    const auto payload = message.body.subspan(sizeof head);
    const std::byte fill = fill_of(message.from, self_, head.number);
    if (payload.size() != size_of(head.number) ||
        std::any_of(payload.begin(), payload.end(), [&](std::byte b) { return b != fill; })) {
      fail(fmt::format("message {} of node {} is damaged", head.number, message.from.value));
    }
  }

  bool is_done() const override {
    return std::all_of(expected_.begin(), expected_.end(),
                       [&](std::uint32_t got) { return got == count_; });
  }

 private:
  const NodeId self_;
  const std::uint32_t count_;
  std::vector<std::uint32_t> expected_;
};

TEST_P(OnEachBackEnd, DeliversInOrderWhateverTheSizes) {
  EXPECT_NO_FAILURE(run(GetParam(), [](NodeId self, std::uint32_t nodes) {
    return std::make_unique<OrderedStreams>(self, nodes, nodes > 4 ? 12 : 24);
  }));
}

// Sends from within handlers: a token goes round a ring of all nodes, with a tail of small
// messages behind it, and node 0 ends the game.
class Ring final : public Scenario {
 public:
  Ring(NodeId self, std::uint32_t nodes, std::uint32_t hops)
      : self_(self), nodes_(nodes), hops_(hops) {}

  void start(Fabric& fabric) override {
    fabric_ = &fabric;
    if (self_ == base::kOrigin) pass(0);
  }
  void on_message(const Incoming& message) override {
    if (message.type == kData + 2) {
      done_ = true;
      return;
    }
    if (message.type == kData + 1) {
      ++tails_;
      return;
    }
    std::uint32_t hop = 0;
    std::memcpy(&hop, message.body.data(), sizeof hop);
    pass(hop + 1);
  }
  bool is_done() const override { return done_; }

 private:
  void pass(std::uint32_t hop) {
    if (hop == hops_) {
      for (std::uint16_t to = 0; to < nodes_; ++to) fabric_->send(NodeId(to), kData + 2, {});
      return;
    }
    const NodeId next(static_cast<std::uint16_t>((self_.value + 1) % nodes_));
    fabric_->send(next, kData, bytes_of(hop));
    fabric_->send(next, kData + 1, bytes_of(hop));
  }

  const NodeId self_;
  const std::uint32_t nodes_;
  const std::uint32_t hops_;
  Fabric* fabric_ = nullptr;
  std::uint32_t tails_ = 0;
  bool done_ = false;
};

TEST_P(OnEachBackEnd, HandlersSend) {
  EXPECT_NO_FAILURE(run(GetParam(), [](NodeId self, std::uint32_t nodes) {
    return std::make_unique<Ring>(self, nodes, 300);
  }));
}

// Many threads of a node send to every node at once: each thread's messages stay in order.
class Crowd final : public Scenario {
 public:
  static constexpr std::uint32_t kThreads = 3;
  Crowd(NodeId self, std::uint32_t nodes, std::uint32_t count)
      : nodes_(nodes), count_(count), expected_(nodes * kThreads, 0) {
    static_cast<void>(self);
  }
  ~Crowd() override {
    for (auto& thread : threads_) thread.join();
  }

  void start(Fabric& fabric) override {
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      threads_.emplace_back([this, &fabric, thread] {
        std::vector<std::byte> payload(10000);
        for (std::uint32_t number = 0; number < count_; ++number) {
          const std::uint32_t head[2] = {thread, number};
          for (std::uint16_t to = 0; to < nodes_; ++to) {
            fabric.send(NodeId(to), kData, bytes_of(head),
                        std::span(payload).first(number * 97 % payload.size()));
          }
        }
      });
    }
  }
  void on_message(const Incoming& message) override {
    std::uint32_t head[2];
    std::memcpy(head, message.body.data(), sizeof head);
    if (head[1] != expected_[message.from.value * kThreads + head[0]]++) fail("out of order");
  }
  bool is_done() const override {
    return std::all_of(expected_.begin(), expected_.end(),
                       [&](std::uint32_t got) { return got == count_; });
  }

 private:
  const std::uint32_t nodes_;
  const std::uint32_t count_;
  std::vector<std::uint32_t> expected_;
  std::vector<std::thread> threads_;
};

TEST_P(OnEachBackEnd, ManyThreadsSend) {
  if (GetParam().back_end == BackEnd::kSim) GTEST_SKIP() << "the simulation has one thread";
  EXPECT_NO_FAILURE(run(GetParam(), [](NodeId self, std::uint32_t nodes) {
    return std::make_unique<Crowd>(self, nodes, 300);
  }));
}

INSTANTIATE_TEST_SUITE_P(
    Fabric, OnEachBackEnd,
    testing::Values(Setting{BackEnd::kLoopback, 1}, Setting{BackEnd::kLoopback, 2},
                    Setting{BackEnd::kLoopback, 4}, Setting{BackEnd::kLoopback, 8},
                    Setting{BackEnd::kSim, 2}, Setting{BackEnd::kSim, 3}, Setting{BackEnd::kSim, 8},
                    Setting{BackEnd::kUcx, 1}, Setting{BackEnd::kUcx, 2}, Setting{BackEnd::kUcx, 3},
                    Setting{BackEnd::kUcx, 4}, Setting{BackEnd::kUcx, 8},
                    Setting{BackEnd::kUcxTcp, 2}, Setting{BackEnd::kUcxTcp, 3},
                    Setting{BackEnd::kUcxTcp, 4}, Setting{BackEnd::kSlowLoopback, 1},
                    Setting{BackEnd::kSlowLoopback, 2}, Setting{BackEnd::kSlowLoopback, 4},
                    Setting{BackEnd::kSlowUcx, 2}, Setting{BackEnd::kSlowUcx, 4}),
    name_of);

}  // namespace
}  // namespace amasia::fabric
