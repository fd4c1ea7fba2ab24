// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "fabric/bootstrap_space.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

std::vector<std::byte> bytes_from(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

BootstrapMessage put(const char* key, std::string_view value) {
  return {BootstrapWord::kPut, {}, 0, key, bytes_from(value)};
}
BootstrapMessage fence() { return {BootstrapWord::kFence, {}, 0, {}, {}}; }
BootstrapMessage get(std::uint16_t node, const char* key) {
  return {BootstrapWord::kGet, NodeId(node), 0, key, {}};
}

TEST(BootstrapSpace, ValuesAreSeenAfterTheFence) {
  BootstrapSpace space(2, {});
  const NodeId zero(0);
  const NodeId one(1);
  ASSERT_TRUE(space.step(zero, put("a", "x")).ok());
  EXPECT_EQ(space.step(one, get(0, "a")).value().at(0).message.word, BootstrapWord::kError);
  EXPECT_TRUE(space.missing_from_fence().empty());
  EXPECT_TRUE(space.step(zero, fence()).value().empty());
  EXPECT_EQ(space.missing_from_fence(), std::vector<NodeId>{one});
  EXPECT_EQ(space.step(one, fence()).value().size(), 2u);
  EXPECT_EQ(space.step(one, get(0, "a")).value().at(0).message.value, bytes_from("x"));
}

TEST(BootstrapSpace, BrokenRulesAreErrors) {
  BootstrapSpace space(2, {});
  ASSERT_TRUE(space.step(NodeId(0), put("a", "x")).ok());
  EXPECT_FALSE(space.step(NodeId(0), put("a", "y")).ok());
  ASSERT_TRUE(space.step(NodeId(0), fence()).ok());
  EXPECT_FALSE(space.step(NodeId(0), fence()).ok());
  EXPECT_FALSE(space.step(NodeId(1), {BootstrapWord::kFenced, {}, 0, {}, {}}).ok());
}

TEST(BootstrapSpace, AFailureAnswersEveryFence) {
  BootstrapSpace space(3, {});
  ASSERT_TRUE(space.step(NodeId(0), fence()).ok());
  const auto told = space.fail("node 2 died");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].to, NodeId(0));
  EXPECT_EQ(space.step(NodeId(1), fence()).value().at(0).message.word, BootstrapWord::kError);
}

TEST(BootstrapReader, PutsMessagesTogetherFromAnyPieces) {
  const auto whole = encode(put("key", "value"));
  BootstrapReader reader;
  for (int copy = 0; copy < 3; ++copy) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_FALSE(reader.next().value().has_value());
      reader.append(std::span(whole).subspan(i, 1));
    }
    const auto message = reader.next();
    ASSERT_TRUE(message.ok() && message.value().has_value());
    EXPECT_EQ(message.value()->key, "key");
    EXPECT_EQ(message.value()->value, bytes_from("value"));
  }
}

TEST(BootstrapReader, MalformedStreamsAreErrors) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    auto bytes = encode(put("key", "value"));
    bytes[random() % sizeof(BootstrapHeader)] ^= static_cast<std::byte>(1 + random() % 255);
    BootstrapReader reader;
    reader.append(bytes);
    const auto read = reader.next();  // an error, or a message of other words: never a crash
    if (read.ok() && read.value().has_value()) {
      EXPECT_LE(read.value()->key.size() + read.value()->value.size(), 8u);
    }
  }
  BootstrapHeader header;
  header.word = BootstrapWord::kPut;
  header.value_length = kMaxBootstrapValue + 1;
  BootstrapReader reader;
  reader.append(std::as_bytes(std::span(&header, 1)));
  EXPECT_FALSE(reader.next().ok());
}

// Two clients as threads, and the server as the launcher would run it.
class ServedBootstrap : public testing::Test {
 protected:
  ServedBootstrap() {
    for (int node = 0; node < 2; ++node) {
      auto pair = os::make_socket_pair().value();
      server_ends_.push_back(pair.first.release());
      client_ends_.push_back(pair.second.release());
    }
    service_ = serve_bootstrap(make_job_secret(), server_ends_);
  }
  void serve() {
    while (!service_->descriptors().empty()) {
      const auto open = service_->descriptors();
      const unsigned ready =
          os::wait_readable(open.data(), static_cast<unsigned>(open.size()), base::kSecond);
      for (std::size_t i = 0; i < open.size(); ++i) {
        if ((ready >> i & 1) != 0) last_ = service_->serve(open[i]);
      }
    }
  }
  std::vector<int> server_ends_;
  std::vector<int> client_ends_;
  std::unique_ptr<BootstrapService> service_;
  Status last_ = base::ok();
};

TEST_F(ServedBootstrap, NodesExchangeValues) {
  std::vector<std::thread> nodes;
  for (const int end : client_ends_) {
    nodes.emplace_back([end] {
      auto bootstrap = connect_bootstrap(end).value();
      const std::uint16_t self = bootstrap->self().value;
      ASSERT_EQ(bootstrap->node_count(), 2u);
      const std::vector<std::byte> large(kMaxBootstrapValue, static_cast<std::byte>(self));
      ASSERT_TRUE(bootstrap->put("v", large).ok());
      ASSERT_TRUE(bootstrap->fence(10 * base::kSecond).ok());
      const auto other = bootstrap->get(NodeId(static_cast<std::uint16_t>(1 - self)), "v");
      ASSERT_TRUE(other.ok());
      EXPECT_EQ(other.value().size(), kMaxBootstrapValue);
      EXPECT_EQ(other.value()[77], static_cast<std::byte>(1 - self));
      EXPECT_FALSE(bootstrap->get(NodeId(0), "absent").ok());
    });
  }
  serve();
  for (auto& node : nodes) node.join();
  EXPECT_TRUE(last_.ok());
}

TEST_F(ServedBootstrap, ATimeOutNamesWhoIsMissing) {
  std::thread absent([end = client_ends_[1]] { auto held = connect_bootstrap(end); });
  std::thread waiting([end = client_ends_[0]] {
    auto bootstrap = connect_bootstrap(end).value();
    const auto fenced = bootstrap->fence(50 * base::kMillisecond);
    ASSERT_FALSE(fenced.ok());
    EXPECT_EQ(fenced.error().message, "node 1 did not come up within 1 s");
  });
  serve();
  absent.join();
  waiting.join();
}

TEST_F(ServedBootstrap, GarbageCostsTheClientItsPlace) {
  os::Descriptor other(client_ends_[1]);
  {
    os::Descriptor client(client_ends_[0]);
    const std::vector<std::byte> garbage(64, std::byte{0xee});
    ASSERT_TRUE(os::send_all(client.get(), garbage, os::monotonic_now() + base::kSecond).ok());
    EXPECT_FALSE(service_->serve(server_ends_[0]).ok());
  }
  EXPECT_EQ(service_->descriptors().size(), 1u);
}

}  // namespace
}  // namespace amasia::fabric
