// SPDX-License-Identifier: Apache-2.0
// What happens when peers die, leave, do not poll, or are not who they say.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "fabric/proof.hpp"
#include "fabric/test_cluster.hpp"
#include "fabric/ucx_port.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

constexpr MessageType kData = 0x100;

#define EXPECT_NO_FAILURE(expression) \
  for (const std::string& failure : (expression)) ADD_FAILURE() << failure

// Counts messages and losses.
class Recorder final : public Handler, public PeerLostHandler {
 public:
  explicit Recorder(Fabric& fabric) {
    fabric.set_handler(kData, kTypeCount - 1, this);
    fabric.set_peer_lost_handler(this);
  }
  void on_message(const Incoming& message) override {
    ++messages;
    bytes += message.body.size();
  }
  void on_peer_lost(NodeId peer, std::string_view why) override {
    ++losses;
    lost = peer;
    reason = why;
  }
  std::uint64_t messages = 0;
  Bytes bytes = 0;
  int losses = 0;
  NodeId lost;
  std::string reason;
};

// Polls until `done` or 20 s have passed.
template <typename Done>
bool poll_until(Fabric& fabric, Done done) {
  const Nanos end = os::monotonic_now() + 20 * base::kSecond;
  while (!done() && os::monotonic_now() < end) {
    wait_and_poll(fabric, 64, 0, 100 * base::kMillisecond);
  }
  return done();
}

class OverUcx : public testing::TestWithParam<const char*> {
 protected:
  static UcxSettings settings() {
    UcxSettings settings;
    settings.transports = GetParam();
    settings.keepalive = 200 * base::kMillisecond;
    return settings;
  }
};

// F5: what a peer does not take is queued, and arrives when it polls again.
TEST_P(OverUcx, APeerThatDoesNotPollHoldsNobodyUp) {
  EXPECT_NO_FAILURE(run_in_processes(2, [](Bootstrap& bootstrap) -> std::string {
    auto fabric = connect_ucx(bootstrap, settings()).value();
    Recorder recorder(*fabric);
    const NodeId peer(static_cast<std::uint16_t>(1 - bootstrap.self().value));
    constexpr std::uint64_t kCount = 48;
    std::vector<std::byte> payload(base::kMiB);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      // The payload may be overwritten at once.
      std::fill(payload.begin(), payload.end(), static_cast<std::byte>(i));
      if (!fabric->send(peer, kData, {}, payload)) return "cannot send";
    }
    const Statistics statistics = fabric->statistics();
    if (statistics.bytes_queued == 0) return "the network took 48 MiB that nobody read";
    // Both have sent before either polls.
    if (!bootstrap.fence(20 * base::kSecond).ok()) return "no fence";
    if (!poll_until(*fabric, [&] { return recorder.messages == kCount; })) {
      return fmt::format("{} of {} messages came", recorder.messages, kCount);
    }
    if (!poll_until(*fabric, [&] { return fabric->statistics().bytes_queued == 0; })) {
      return "bytes stay queued";
    }
    return "";
  }));
}

TEST_P(OverUcx, AKilledPeerIsReportedOnce) {
  ProcessCluster cluster;
  cluster.expendable = {NodeId(1)};
  EXPECT_NO_FAILURE(run_in_processes(
      3,
      [](Bootstrap& bootstrap) -> std::string {
        auto fabric = connect_ucx(bootstrap, settings()).value();
        Recorder recorder(*fabric);
        // A death before all are connected is another story: connect_ucx fails then.
        if (!bootstrap.fence(20 * base::kSecond).ok()) return "no fence";
        if (bootstrap.self() == NodeId(1)) ::raise(SIGKILL);
        if (!poll_until(*fabric, [&] { return recorder.losses != 0; })) return "not told";
        if (recorder.lost != NodeId(1)) return "told of the wrong node";
        if (fabric->send(NodeId(1), kData, {})) return "sends to the dead";
        const NodeId other(static_cast<std::uint16_t>(2 - bootstrap.self().value));
        if (!fabric->send(other, kData, {})) return "does not send to the living";
        if (!poll_until(*fabric, [&] { return recorder.messages == 1; })) return "nothing came";
        return recorder.losses == 1 ? "" : "told twice";
      },
      cluster));
}

TEST_P(OverUcx, APeerThatLeavesInOrderIsNotLost) {
  EXPECT_NO_FAILURE(run_in_processes(3, [](Bootstrap& bootstrap) -> std::string {
    auto fabric = connect_ucx(bootstrap, settings()).value();
    Recorder recorder(*fabric);
    if (bootstrap.self() == NodeId(1)) {
      for (std::uint16_t to : {0, 2}) fabric->send(NodeId(to), kData, {});
      return "";
    }
    // What it said before it left arrives, and then it cannot be reached.
    if (!poll_until(*fabric, [&] { return recorder.messages == 1; })) return "nothing came";
    if (!poll_until(*fabric, [&] { return !fabric->send(NodeId(1), kData, {}); })) {
      return "it can still be sent to";
    }
    return recorder.losses == 0 ? "" : "reported as lost: " + recorder.reason;
  }));
}

TEST_P(OverUcx, ASleepingNodeUsesNoCpuAndWakes) {
  EXPECT_NO_FAILURE(run_in_processes(2, [](Bootstrap& bootstrap) -> std::string {
    auto fabric = connect_ucx(bootstrap, settings()).value();
    Recorder recorder(*fabric);
    if (bootstrap.self() == NodeId(1)) {
      ::usleep(300'000);  // the time that node 0 sleeps through; nothing is judged by it
      fabric->send(NodeId(0), kData, {});
      return poll_until(*fabric, [&] { return recorder.messages == 1; }) ? "" : "no answer";
    }
    const int self = os::current_thread_id();
    const Nanos before = os::thread_cpu_time(self);
    if (!poll_until(*fabric, [&] { return recorder.messages == 1; })) return "not woken";
    const Nanos used = os::thread_cpu_time(self) - before;
    fabric->send(NodeId(1), kData, {});
    if (used > 50 * base::kMillisecond) return fmt::format("{} us of CPU", used / 1000);
    return "";
  }));
}

// Another thread's send wakes the thread that sleeps for this node.
TEST_P(OverUcx, SelfSendsWakeTheSleeper) {
  EXPECT_NO_FAILURE(run_in_processes(1, [](Bootstrap& bootstrap) -> std::string {
    auto fabric = connect_ucx(bootstrap, settings()).value();
    Recorder recorder(*fabric);
    constexpr std::uint64_t kCount = 20000;
    std::thread sender([&] {
      for (std::uint64_t i = 0; i < kCount; ++i) fabric->send(NodeId(0), kData, bytes_of(i));
    });
    const bool all = poll_until(*fabric, [&] { return recorder.messages == kCount; });
    sender.join();
    return all ? "" : fmt::format("{} came", recorder.messages);
  }));
}

// Two nodes flood a third, which sleeps whenever it can.
TEST_P(OverUcx, AFloodedSleeperHearsAll) {
  EXPECT_NO_FAILURE(run_in_processes(3, [](Bootstrap& bootstrap) -> std::string {
    auto fabric = connect_ucx(bootstrap, settings()).value();
    Recorder recorder(*fabric);
    constexpr std::uint64_t kCount = 3000;
    if (bootstrap.self() == NodeId(0)) {
      if (!poll_until(*fabric, [&] { return recorder.messages == 2 * kCount; })) {
        return fmt::format("{} came", recorder.messages);
      }
      for (std::uint16_t to : {1, 2}) fabric->send(NodeId(to), kData, {});
      return recorder.losses == 0 ? "" : "lost: " + recorder.reason;
    }
    std::mt19937_64 random(bootstrap.self().value);
    const std::vector<std::byte> payload(100000);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::size_t size = random() % 8 == 0 ? random() % payload.size() : random() % 80;
      fabric->send(NodeId(0), kData, {}, std::span(payload).first(size));
      for (std::uint64_t k = random() % 4; k != 0; --k) fabric->poll(8);
    }
    if (poll_until(*fabric, [&] { return recorder.messages == 1; })) return "";
    return fmt::format("{} bytes queued", fabric->statistics().bytes_queued);
  }));
}

TEST_P(OverUcx, ANodeWithAnotherSecretIsTurnedAway) {
  class Liar final : public Bootstrap {
   public:
    explicit Liar(Bootstrap& real) : real_(real), secret_(make_job_secret()) {}
    NodeId self() const override { return real_.self(); }
    std::uint32_t node_count() const override { return real_.node_count(); }
    const JobSecret& secret() const override { return secret_; }
    Status put(std::string_view key, std::span<const std::byte> value) override {
      return real_.put(key, value);
    }
    Status fence(Nanos timeout) override { return real_.fence(timeout); }
    Result<std::vector<std::byte>> get(NodeId node, std::string_view key) override {
      return real_.get(node, key);
    }

   private:
    Bootstrap& real_;
    JobSecret secret_;
  };
  EXPECT_NO_FAILURE(run_in_processes(2, [](Bootstrap& bootstrap) -> std::string {
    UcxSettings brief = settings();
    brief.connect_timeout = 5 * base::kSecond;
    if (bootstrap.self() == NodeId(1)) {
      Liar liar(bootstrap);
      return connect_ucx(liar, brief).ok() ? "the liar is accepted" : "";
    }
    const auto fabric = connect_ucx(bootstrap, brief);
    if (fabric.ok()) return "the liar is accepted";
    const std::string& why = fabric.error().message;
    return why == "node 1 does not know the job's secret" ? "" : "says: " + why;
  }));
}

// A process that knows where to send, but not the secret, while two nodes talk.
class Stranger final : public UcxListener {
 public:
  bool on_frame(std::span<const std::byte>, std::span<const std::byte>, void*) override {
    return false;
  }
  void on_failure(NodeId, const char*) override {}
  void on_sent(std::size_t) override {}

  std::string attack(Bootstrap& bootstrap) {
    auto port = UcxPort::open(UcxSettings{}, *this).value();
    if (!bootstrap.fence(20 * base::kSecond).ok()) return "no fence";
    const auto address = bootstrap.get(NodeId(0), "where").value();
    if (!port->connect(NodeId(0), address).ok()) return "cannot connect";
    std::mt19937_64 random(7);
    std::vector<std::byte> body(100000);
    for (int i = 0; i < 2000; ++i) {
      FrameHeader header;
      header.type = static_cast<MessageType>(random() % 4 == 0 ? random() % 4 : kData);
      header.from = static_cast<std::uint16_t>(random() % 4);
      header.sequence = random() % 4;
      header.token = random() % 3 == 0 ? 0 : random();
      const std::size_t size = random() % 8 == 0 ? random() % body.size() : random() % 80;
      header.length = static_cast<std::uint32_t>(random() % 2 == 0 ? size : random());
      port->transmit(NodeId(0), header, {std::span(body).first(size), {}, {}});
      for (int step = 0; step < 4; ++step) port->progress();
    }
    for (int k = 0; k < 10; ++k) {
      auto e = os::monotonic_now() + base::kSecond / 2;
      while (os::monotonic_now() < e) {
        port->progress();
        os::yield_core();
      }
    }
    return bootstrap.fence(20 * base::kSecond).ok() ? "" : "no fence";
  }
};

TEST(UcxStranger, CanDoNothing) {
  // Nodes 0 and 1 form a job of two; node 2 of the bootstrap is the stranger.
  class JobOfTwo final : public Bootstrap {
   public:
    explicit JobOfTwo(Bootstrap& real) : real_(real) {}
    NodeId self() const override { return real_.self(); }
    std::uint32_t node_count() const override { return 2; }
    const JobSecret& secret() const override { return real_.secret(); }
    Status put(std::string_view, std::span<const std::byte> value) override {
      return real_.put("where", value);
    }
    Status fence(Nanos timeout) override { return real_.fence(timeout); }
    Result<std::vector<std::byte>> get(NodeId node, std::string_view) override {
      return real_.get(node, "where");
    }

   private:
    Bootstrap& real_;
  };
  EXPECT_NO_FAILURE(run_in_processes(3, [](Bootstrap& bootstrap) -> std::string {
    if (bootstrap.self() == NodeId(2)) return Stranger().attack(bootstrap);
    JobOfTwo job(bootstrap);
    auto connected = connect_ucx(job, {});
    // During the handshake the stranger can keep the job from starting, which must then say so.
    if (!connected.ok()) {
      static_cast<void>(bootstrap.fence(20 * base::kSecond));
      return "";
    }
    Fabric& fabric = *connected.value();
    Recorder recorder(fabric);
    const NodeId peer(static_cast<std::uint16_t>(1 - bootstrap.self().value));
    for (std::uint64_t i = 0; i < 500; ++i) fabric.send(peer, kData, bytes_of(i));
    // Polled throughout, as what is queued moves only then.
    std::atomic<bool> attack_over{false};
    std::thread at_fence([&] {
      static_cast<void>(bootstrap.fence(20 * base::kSecond));
      attack_over.store(true, std::memory_order_release);  // acquired by the polling thread
    });
    const bool ended = poll_until(fabric, [&] {
      return attack_over.load(std::memory_order_acquire) && recorder.messages >= 500;
    });
    at_fence.join();
    if (!ended) return fmt::format("{} of 500 messages came", recorder.messages);
    const std::uint64_t refused = fabric.statistics().frames_refused;
    if (bootstrap.self() == NodeId(0) && refused < 2000) return fmt::format("{} refused", refused);
    if (recorder.messages != 500) return "a stranger's message was delivered";
    return recorder.losses == 0 ? "" : "lost: " + recorder.reason;
  }));
}

TEST_P(OverUcx, NodesInNetworkNamespacesTalk) {
  if (std::string_view(GetParam()) != "tcp") GTEST_SKIP() << "namespaces stand for hosts: tcp only";
  auto spaces = os::NetworkNamespaces::make(3);
  if (!spaces.ok()) GTEST_SKIP() << spaces.error().message;
  ProcessCluster cluster;
  cluster.prepare = [&](NodeId self) -> std::string {
    const auto entered = spaces.value().enter(self.value);
    return entered.ok() ? "" : entered.error().message;
  };
  EXPECT_NO_FAILURE(run_in_processes(
      3,
      [](Bootstrap& bootstrap) -> std::string {
        UcxSettings tcp = settings();
        tcp.net_devices = os::NetworkNamespaces::kDevice;
        auto connected = connect_ucx(bootstrap, tcp);
        if (!connected.ok()) return connected.error().message;
        Fabric& fabric = *connected.value();
        Recorder recorder(fabric);
        const std::vector<std::byte> payload(200000);
        for (std::uint16_t to = 0; to < 3; ++to) fabric.send(NodeId(to), kData, {}, payload);
        if (!poll_until(fabric, [&] { return recorder.messages == 3; })) return "nothing came";
        return recorder.losses == 0 ? "" : "lost: " + recorder.reason;
      },
      cluster));
}

std::string name_of(const testing::TestParamInfo<const char*>& tested) {
  return std::string_view(tested.param) == "tcp" ? "Tcp" : "SharedMemory";
}

INSTANTIATE_TEST_SUITE_P(Faults, OverUcx, testing::Values("posix,cma", "tcp"), name_of);

TEST(Loopback, ALostNodeIsReportedOnceAndHeardNoMore) {
  const auto network = make_loopback(3);
  Recorder zero(network->fabric(NodeId(0)));
  Recorder two(network->fabric(NodeId(2)));
  network->fabric(NodeId(1)).send(NodeId(0), kData, {});
  network->lose(NodeId(1));
  network->lose(NodeId(1));
  EXPECT_FALSE(network->fabric(NodeId(1)).send(NodeId(0), kData, {}));
  EXPECT_FALSE(network->fabric(NodeId(0)).send(NodeId(1), kData, {}));
  while (network->fabric(NodeId(0)).poll(10) != 0) {
  }
  EXPECT_EQ(zero.losses, 1);
  EXPECT_EQ(zero.lost, NodeId(1));
  EXPECT_FALSE(network->fabric(NodeId(2)).arm());
}

TEST(Sim, TheSameSeedGivesTheSameRun) {
  const auto run = [](std::uint64_t seed) {
    SimSettings settings;
    settings.node_count = 4;
    settings.seed = seed;
    const auto network = make_sim(settings);
    struct Trace final : Handler {
      SimNetwork* network = nullptr;
      std::vector<std::pair<Nanos, std::uint16_t>> events;
      void on_message(const Incoming& message) override {
        events.emplace_back(network->now(), message.from.value);
      }
    } trace;
    trace.network = network.get();
    for (std::uint16_t node = 0; node < 4; ++node) {
      network->fabric(NodeId(node)).set_handler(kData, kData, &trace);
    }
    for (std::uint16_t round = 0; round < 50; ++round) {
      for (std::uint16_t from = 0; from < 4; ++from) {
        const NodeId to(static_cast<std::uint16_t>((from + round) % 4));
        network->fabric(NodeId(from)).send(to, kData, {});
      }
    }
    network->run(1000);
    return trace.events;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

TEST(Sim, MessagesOfDifferentPairsOvertakeAndLossIsToldAfterTheLastMessage) {
  bool overtook = false;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimSettings settings;
    settings.node_count = 3;
    settings.seed = seed;
    const auto network = make_sim(settings);
    Recorder zero(network->fabric(NodeId(0)));
    Recorder two(network->fabric(NodeId(2)));
    for (int i = 0; i < 20; ++i) network->fabric(NodeId(1)).send(NodeId(0), kData, {});
    network->fabric(NodeId(2)).send(NodeId(0), kData, {});
    network->advance_to(20 * base::kMicrosecond);
    network->fabric(NodeId(0)).poll(100);
    overtook = overtook || zero.messages < 20;
    network->lose(NodeId(1));
    while (zero.losses == 0) ASSERT_EQ(network->run(1), 1u);
    const std::uint64_t before = zero.messages;
    network->run(1000);
    EXPECT_LE(zero.messages, before + 1) << "only node 2 may still be heard; seed " << seed;
    EXPECT_EQ(zero.losses, 1);
    EXPECT_EQ(two.losses, 1);
    EXPECT_FALSE(network->fabric(NodeId(0)).send(NodeId(1), kData, {}));
  }
  EXPECT_TRUE(overtook);
}

}  // namespace
}  // namespace amasia::fabric
