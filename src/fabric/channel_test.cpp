// SPDX-License-Identifier: Apache-2.0
#include "fabric/channel.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace amasia::fabric {
namespace {

const JobSecret kSecret = [] {
  JobSecret secret;
  secret.bytes.fill(std::byte{7});
  return secret;
}();

Nonce nonce_of(int value) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(value));
  return nonce;
}

std::span<const std::byte> bytes(const auto& value) { return bytes_of(value); }

// Two ends that speak the protocol, and a network in between that the test is.
struct Pair {
  Channel zero{NodeId(0), NodeId(1), kSecret, nonce_of(1)};
  Channel one{NodeId(1), NodeId(0), kSecret, nonce_of(2)};

  void open() {
    ASSERT_EQ(one.judge(zero.hello_header(), bytes(zero.hello_body())).verdict, Verdict::kAccept);
    ASSERT_EQ(zero.judge(one.hello_header(), bytes(one.hello_body())).verdict, Verdict::kAccept);
    ASSERT_TRUE(one.judge(zero.proof_header(), bytes(zero.proof_body())).opened);
    ASSERT_TRUE(zero.judge(one.proof_header(), bytes(one.proof_body())).opened);
  }
};

TEST(Channel, OpensWhenBothHaveProved) {
  Pair pair;
  const auto greeted = pair.one.judge(pair.zero.hello_header(), bytes(pair.zero.hello_body()));
  EXPECT_TRUE(greeted.send_proof);
  EXPECT_EQ(pair.one.state(), ChannelState::kGreeted);
  pair.zero.judge(pair.one.hello_header(), bytes(pair.one.hello_body()));
  const auto proved = pair.one.judge(pair.zero.proof_header(), bytes(pair.zero.proof_body()));
  EXPECT_TRUE(proved.opened);
  EXPECT_FALSE(proved.send_proof);
  EXPECT_TRUE(pair.one.is_open());
}

TEST(Channel, AProofThatOvertakesTheGreetingCounts) {
  Pair pair;
  pair.zero.judge(pair.one.hello_header(), bytes(pair.one.hello_body()));
  const auto first = pair.one.judge(pair.zero.proof_header(), bytes(pair.zero.proof_body()));
  EXPECT_TRUE(first.opened);
  EXPECT_TRUE(first.send_proof);
  EXPECT_EQ(pair.one.judge(pair.zero.hello_header(), bytes(pair.zero.hello_body())).verdict,
            Verdict::kAccept);
}

TEST(Channel, AnotherSecretIsFoundOut) {
  JobSecret wrong = kSecret;
  wrong.bytes[31] = std::byte{8};
  Channel stranger(NodeId(0), NodeId(1), wrong, nonce_of(1));
  Channel node(NodeId(1), NodeId(0), kSecret, nonce_of(2));
  stranger.judge(node.hello_header(), bytes(node.hello_body()));
  const auto judged = node.judge(stranger.proof_header(), bytes(stranger.proof_body()));
  EXPECT_EQ(judged.verdict, Verdict::kBreak);
  EXPECT_STREQ(judged.reason, "does not know the job's secret");
}

TEST(Channel, AReflectedProofIsWorthless) {
  Channel node(NodeId(1), NodeId(0), kSecret, nonce_of(2));
  FrameHeader hello = node.hello_header();
  std::swap(hello.from, hello.to);
  node.judge(hello, bytes(node.hello_body()));
  const ProofBody own = node.proof_body();
  FrameHeader proof = node.proof_header();
  std::swap(proof.from, proof.to);
  EXPECT_EQ(node.judge(proof, bytes(own)).verdict, Verdict::kBreak);
}

TEST(Channel, AnOldConnectionsProofIsWorthless) {
  Pair old_pair;
  old_pair.open();
  const ProofBody recorded = old_pair.zero.proof_body();
  Channel fresh(NodeId(1), NodeId(0), kSecret, nonce_of(3));
  EXPECT_EQ(fresh.judge(old_pair.zero.proof_header(), bytes(recorded)).verdict, Verdict::kBreak);
}

TEST(Channel, NothingIsDeliveredBeforeTheProof) {
  Pair pair;
  pair.one.judge(pair.zero.hello_header(), bytes(pair.zero.hello_body()));
  pair.zero.judge(pair.one.hello_header(), bytes(pair.one.hello_body()));
  pair.zero.judge(pair.one.proof_header(), bytes(pair.one.proof_body()));
  const FrameHeader early = pair.zero.stamp(0x100, 0);
  EXPECT_EQ(pair.one.judge(early, {}).verdict, Verdict::kHold);
  pair.one.judge(pair.zero.proof_header(), bytes(pair.zero.proof_body()));
  EXPECT_EQ(pair.one.judge(early, {}).verdict, Verdict::kDeliver);
}

TEST(Channel, AFrameAheadOfItsTurnIsHeld) {
  Pair pair;
  pair.open();
  const FrameHeader first = pair.zero.stamp(0x100, 0);
  const FrameHeader second = pair.zero.stamp(0x100, 0);
  EXPECT_EQ(pair.one.judge(second, {}).verdict, Verdict::kHold);
  EXPECT_EQ(pair.one.judge(first, {}).verdict, Verdict::kDeliver);
  EXPECT_EQ(pair.one.judge(second, {}).verdict, Verdict::kDeliver);
}

TEST(Channel, AfterAGoodbyeNothingFollows) {
  Pair pair;
  pair.open();
  EXPECT_EQ(pair.one.judge(pair.zero.stamp(kGoodbyeType, 0), {}).verdict, Verdict::kLeave);
  EXPECT_EQ(pair.one.state(), ChannelState::kLeft);
  EXPECT_EQ(pair.one.judge(pair.zero.stamp(0x100, 0), {}).verdict, Verdict::kBreak);
}

TEST(Channel, AGoodbyeIsAnsweredOnce) {
  Pair pair;
  pair.open();
  pair.one.judge(pair.zero.stamp(kGoodbyeType, 0), {});
  EXPECT_EQ(pair.zero.judge(pair.one.stamp(kFarewellType, 0), {}).verdict, Verdict::kFarewell);
}

TEST(Channel, TwoThatLeaveAtOnceAnswerEachOther) {
  Pair pair;
  pair.open();
  const FrameHeader goodbye = pair.one.stamp(kGoodbyeType, 0);
  EXPECT_EQ(pair.one.judge(pair.zero.stamp(kGoodbyeType, 0), {}).verdict, Verdict::kLeave);
  const FrameHeader farewell = pair.one.stamp(kFarewellType, 0);
  EXPECT_EQ(pair.zero.judge(farewell, {}).verdict, Verdict::kHold);  // it came first
  EXPECT_EQ(pair.zero.judge(goodbye, {}).verdict, Verdict::kLeave);
  EXPECT_EQ(pair.zero.judge(farewell, {}).verdict, Verdict::kFarewell);
  EXPECT_EQ(pair.one.judge(pair.zero.stamp(kFarewellType, 0), {}).verdict, Verdict::kFarewell);
}

TEST(Channel, AFarewellWithoutAGoodbyeBreaksTheConnection) {
  Pair pair;
  pair.open();
  EXPECT_EQ(pair.one.judge(pair.zero.stamp(kFarewellType, 0), {}).verdict, Verdict::kBreak);
}

// What a peer may do wrong after it has proved itself: each way costs it its place.
TEST(Channel, MalformedFramesBreakTheConnection) {
  const std::vector<std::byte> body(10);
  const std::pair<const char*, void (*)(FrameHeader&)> damages[] = {
      {"version", [](FrameHeader& h) { h.version = 2; }},
      {"short length", [](FrameHeader& h) { h.length = 9; }},
      {"long length", [](FrameHeader& h) { h.length = 0xffffffff; }},
      {"reserved", [](FrameHeader& h) { h.reserved = 1; }},
      {"low type", [](FrameHeader& h) { h.type = 0x0ff; }},
      {"high type", [](FrameHeader& h) { h.type = 0x400; }},
      {"far ahead", [](FrameHeader& h) { h.sequence += kReorderWindow; }},
      {"twice", [](FrameHeader& h) { h.sequence -= 1; }},
      {"goodbye with a body", [](FrameHeader& h) { h.type = kGoodbyeType; }},
  };
  for (const auto& [name, damage] : damages) {
    Pair pair;
    pair.open();
    ASSERT_EQ(pair.one.judge(pair.zero.stamp(0x100, 10), body).verdict, Verdict::kDeliver);
    FrameHeader header = pair.zero.stamp(0x100, 10);
    damage(header);
    const auto judged = pair.one.judge(header, body);
    EXPECT_EQ(judged.verdict, Verdict::kBreak) << name;
    EXPECT_STRNE(judged.reason, "") << name;
    EXPECT_EQ(pair.one.state(), ChannelState::kLost) << name;
  }
}

// Whoever has no token can do nothing, whatever it sends.
TEST(Channel, RandomFramesNeitherPassNorHarm) {
  std::mt19937_64 random(20);
  Pair pair;
  pair.open();
  for (int round = 0; round < 200000; ++round) {
    FrameHeader header;
    std::uint64_t words[4];
    for (auto& word : words) word = random();
    std::memcpy(&header, words, sizeof header);
    // Half of them look as right as can be without the token.
    if (round % 2 == 0) {
      header.version = kFrameVersion;
      header.type = static_cast<MessageType>(random() % 8 < 4 ? random() % 5 : 0x100);
      header.sequence = random() % 3;
      header.reserved = 0;
      if (random() % 2 == 0) header.token = 0;
    }
    header.from = 0;
    const std::vector<std::byte> body(random() % 100);
    if (random() % 2 == 0) header.length = static_cast<std::uint32_t>(body.size());
    ASSERT_EQ(pair.one.judge(header, body).verdict, Verdict::kRefuse) << "round " << round;
  }
  ASSERT_EQ(pair.one.judge(pair.zero.stamp(0x100, 0), {}).verdict, Verdict::kDeliver);
}

TEST(Channel, TruncatedHeadersAreNotRead) {
  std::vector<std::byte> header(kFrameHeaderSize + 1);
  for (std::size_t size = 0; size <= header.size(); ++size) {
    EXPECT_EQ(read_header(std::span(header).first(size)).has_value(), size == kFrameHeaderSize);
  }
}

TEST(Channel, SendersAreTakenFromTheJobOnly) {
  FrameHeader header;
  header.to = 1;
  header.from = 2;
  EXPECT_EQ(claimed_sender(header, NodeId(1), 3), 2u);
  EXPECT_EQ(claimed_sender(header, NodeId(0), 3), 3u);  // not for us
  header.from = 1;
  EXPECT_EQ(claimed_sender(header, NodeId(1), 3), 3u);  // from ourselves
  header.from = 3;
  EXPECT_EQ(claimed_sender(header, NodeId(1), 3), 3u);  // from nobody
}

}  // namespace
}  // namespace amasia::fabric
