// SPDX-License-Identifier: Apache-2.0
// What a slow link adds to the promises that fabric_test.cpp holds it to.
#include "fabric/slow_link.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

constexpr NodeId kHere(0), kThere(1);
constexpr Nanos kLatency = 3 * base::kMillisecond;
constexpr MessageType kData = 0x100;

struct Sent {
  std::uint64_t number;
  Nanos time;
};

class Receiver final : public Handler, public PeerLostHandler {
 public:
  void on_message(const Incoming& message) override {
    Sent sent{};
    ASSERT_GE(message.body.size(), sizeof sent);
    std::memcpy(&sent, message.body.data(), sizeof sent);
    EXPECT_EQ(sent.number, numbers++);
    EXPECT_FALSE(lost) << "a message after the sender's loss";
    const Nanos taken = os::monotonic_now() - sent.time;
    if (message.from == kThere) {
      EXPECT_GE(taken, kLatency);
    }
    bytes += message.body.size();
  }
  void on_peer_lost(NodeId peer, std::string_view why) override {
    EXPECT_EQ(peer, kThere);
    EXPECT_FALSE(why.empty());
    lost = true;
  }
  std::uint64_t numbers = 0;
  Bytes bytes = 0;
  bool lost = false;
};

class SlowLinks : public testing::Test {
 protected:
  void SetUp() override {
    for (const NodeId node : {kHere, kThere}) {
      auto made = make_slow_link(network_->fabric(node), speed_);
      ASSERT_TRUE(made.ok());
      ends_.push_back(std::move(made).value());
    }
    here().set_handler(kData, kData, &receiver_);
    here().set_peer_lost_handler(&receiver_);
  }
  Fabric& here() { return *ends_[0]; }
  Fabric& there() { return *ends_[1]; }
  void send(Fabric& from, Bytes payload = 0) {
    const Sent head{number_++, os::monotonic_now()};
    const std::vector<std::byte> body(payload);
    ASSERT_TRUE(from.send(kHere, kData, bytes_of(head), body));
  }
  template <typename Ready>
  void poll_until(Ready ready) {
    while (!ready()) ASSERT_GT(wait_and_poll(here(), 64, 0, 20 * base::kSecond), 0u);
  }

  const base::LinkSpeed speed_{.latency = kLatency, .bytes_per_ns = 1};
  std::unique_ptr<LoopbackNetwork> network_ = make_loopback(2);
  std::vector<std::unique_ptr<Fabric>> ends_;
  Receiver receiver_;
  std::uint64_t number_ = 0;
};

TEST_F(SlowLinks, LetNothingArriveEarly) {
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t before = receiver_.numbers;
    send(there());
    poll_until([&] { return receiver_.numbers > before; });
  }
}

TEST_F(SlowLinks, WakeWhoSleepsWhenAMessageIsDue) {
  send(there());
  const int descriptor = here().wait_descriptor();
  while (here().poll(64) == 0) {
    if (!here().arm()) continue;
    os::wait_readable(&descriptor, 1, -1);  // for ever if nobody woke it
  }
  EXPECT_EQ(receiver_.numbers, 1u);
  EXPECT_EQ(here().poll(64), 0u);
  ASSERT_TRUE(here().arm());
  EXPECT_EQ(os::wait_readable(&descriptor, 1, 0), 0u) << "nothing is under way";
}

TEST_F(SlowLinks, KeepToTheBandwidth) {
  const Nanos begin = os::monotonic_now();
  for (int message = 0; message < 5; ++message) send(there(), 4 * base::kMiB - sizeof(Sent));
  poll_until([&] { return receiver_.numbers == 5; });
  // 20 MiB at a byte a nanosecond.
  EXPECT_GE(os::monotonic_now() - begin, static_cast<Nanos>(20 * base::kMiB) + kLatency);
}

TEST_F(SlowLinks, LetMessagesToOneselfPass) {
  send(here());
  EXPECT_EQ(here().poll(64), 1u);
  EXPECT_EQ(receiver_.numbers, 1u);
}

TEST_F(SlowLinks, TellOfALossAfterTheLastMessage) {
  send(there(), 100 * 1000);
  here().poll(64);
  network_->lose(kThere);
  poll_until([&] { return receiver_.lost; });
  EXPECT_EQ(receiver_.numbers, 1u);
}

TEST_F(SlowLinks, CountBodiesAsTheyAre) {
  for (int message = 0; message < 3; ++message) send(there(), 1000);
  poll_until([&] { return receiver_.numbers == 3; });
  send(here(), 10);
  poll_until([&] { return receiver_.numbers == 4; });
  EXPECT_EQ(there().statistics().bytes_out, 3 * (1000 + sizeof(Sent)));
  EXPECT_EQ(there().statistics().messages_out, 3u);
  EXPECT_EQ(here().statistics().bytes_in, receiver_.bytes);
  EXPECT_EQ(here().statistics().messages_in, 4u);
  EXPECT_EQ(here().statistics().bytes_out, 10 + sizeof(Sent));
}

}  // namespace
}  // namespace amasia::fabric
