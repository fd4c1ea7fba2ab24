// SPDX-License-Identifier: Apache-2.0
// A server on a thread, with real sockets and rings, and clients of the same process.
#include "devices/daemon/server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>
#include <thread>

#include "devices/client/link.hpp"
#include "devices/daemon/test_stop.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {
namespace {

// Grants in order, one task a device at a time.
class InOrder : public Policy {
 public:
  std::string_view name() const override { return "in-order"; }
  void add_client(ClientId, double) override {}
  void remove_client(ClientId) override {}
  void add_device(DeviceId, const DeviceDescription&) override { busy_.push_back(false); }
  void change_device(DeviceId, const DeviceDescription&) override {}
  void put(TaskDescription task) override { queued_.push_back(std::move(task)); }
  Decision next(Nanos) override {
    for (auto at = queued_.begin(); at != queued_.end(); ++at) {
      for (std::uint16_t device = 0; device < busy_.size(); ++device) {
        if (busy_[device] || !contains(at->allowed, DeviceId(device))) continue;
        busy_[device] = true;
        Decision decision;
        decision.grant = Grant{at->key, DeviceId(device)};
        queued_.erase(at);
        return decision;
      }
    }
    return {};
  }
  void finish(const TaskEnd& end) override { busy_[end.device.value] = false; }
  void cancel(TaskKey task) override {
    std::erase_if(queued_, [&](const auto& one) { return one.key == task; });
  }
  void place(BufferKey, DeviceId, Bytes) override {}
  void drop(BufferKey, DeviceId) override {}

 private:
  std::vector<TaskDescription> queued_;
  std::vector<bool> busy_;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening = os::listen_at_path(path_, 0600);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    ServerSettings settings;
    settings.own_path = path_;
    // A server that draws out its drain to the limit hangs here.
    settings.drain_limit = 3600 * base::kSecond;
    server_ = std::make_unique<Server>(settings, std::move(listening).value(),
                                       std::make_unique<InOrder>(), nullptr);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(stop_).ok()); });
    link_settings_.connect.path = path_;
    link_settings_.connect.start_daemon = false;
  }
  void TearDown() override {
    stop_.raise();
    thread_.join();
    EXPECT_FALSE(std::filesystem::exists(folder_.path()));
  }
  std::unique_ptr<Link> link() {
    DeviceDescription device;
    device.identity = "host";
    auto made = Link::open(link_settings_, {device});
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }

  const tests::TemporaryFolder folder_{"devices"};
  const std::string path_ = folder_ / "devices.sock";
  Stop stop_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  LinkSettings link_settings_;
};

Record put_record(std::uint64_t task) {
  PutRecord put;
  put.task = task;
  put.allowed = 1;
  return Record::of(put);
}
Record finished_record(std::uint64_t task) {
  FinishedRecord finished;
  finished.task = task;
  return Record::of(finished);
}

// The next record, asleep until it comes; the daemon's end fails the test.
ShortRecord receive(Link& link) {
  const auto interrupt = std::move(os::Wakeup::make()).value();
  Record record;
  for (;;) {
    if (link.receive(&record) == RingState::kOk) return record.as<ShortRecord>();
    if (!link.may_sleep()) continue;
    if ((link.wait(interrupt) & Link::kPackets) != 0) {
      ADD_FAILURE() << "the daemon has closed the connection";
      return {};
    }
  }
}
bool gone(Link& link) {
  const auto interrupt = std::move(os::Wakeup::make()).value();
  for (;;) {
    const auto packet = link.receive_packet();
    if (!packet.ok()) return true;
    if (packet.value().has_value()) continue;
    if (link.may_sleep()) link.wait(interrupt);
    Record record;
    while (link.receive(&record) == RingState::kOk) {
    }
  }
}

TEST_F(ServerTest, GrantsTasksOfTwoClientsInTurn) {
  auto first = link(), second = link();
  for (std::uint64_t task = 1; task <= 300; ++task) {
    // One device: were both put at once, the daemon could read the second one's ring first.
    ASSERT_TRUE(first->send({{put_record(task)}}));
    ASSERT_EQ(receive(*first).number, task);
    ASSERT_TRUE(second->send({{put_record(task)}}));
    ASSERT_TRUE(first->send({{finished_record(task)}}));
    ASSERT_EQ(receive(*second).number, task);
    ASSERT_TRUE(second->send({{finished_record(task)}}));
  }
}

TEST_F(ServerTest, AClientThatWritesRubbishDisturbsNobody) {
  auto honest = link();
  std::mt19937_64 random(5);
  for (int round = 0; round < 30; ++round) {
    auto broken = link();
    switch (round % 3) {
      case 0: {
        Record record;
        for (std::byte& byte : record.bytes) byte = static_cast<std::byte>(random());
        record.bytes[0] |= std::byte{0x40};
        ASSERT_TRUE(broken->send({{record}}));
        break;
      }
      case 1: {
        // Twice the same task.
        ASSERT_TRUE(broken->send({{put_record(3)}}));
        ASSERT_TRUE(broken->send({{put_record(3)}}));
        break;
      }
      default: {
        AnswerPacket packet;
        ASSERT_TRUE(broken->send_packet(packet).ok());
      }
    }
    EXPECT_TRUE(gone(*broken));
    const auto task = static_cast<std::uint64_t>(round) + 1;
    ASSERT_TRUE(honest->send({{put_record(task)}}));
    ASSERT_EQ(receive(*honest).number, task);
    ASSERT_TRUE(honest->send({{finished_record(task)}}));
  }
}

// The welcome of a client that speaks by hand: its memory, its doorbell, its own wake-up.
std::vector<os::Descriptor> welcomed_by_hand(const std::string& path, os::Descriptor* socket) {
  auto connected = os::connect_to_path(path);
  EXPECT_TRUE(connected.ok());
  *socket = std::move(connected).value();
  const int number = socket->get();
  HelloPacket hello;
  EXPECT_TRUE(os::send_packet(number, std::as_bytes(std::span(&hello, 1)), {}).ok());
  os::wait_readable(&number, 1, -1);
  alignas(8) std::byte buffer[kMaxPacket];
  auto welcome = os::receive_packet(number, buffer);
  EXPECT_TRUE(welcome.ok());
  return std::move(welcome.value().descriptors);
}

TEST_F(ServerTest, AClientThatTakesWakeUpsTakesItsOwn) {
  os::Descriptor socket;
  const auto handed = welcomed_by_hand(path_, &socket);
  ASSERT_EQ(handed.size(), 3U);
  std::atomic<bool> enough{false};
  std::thread thief([&] {
    const std::uint64_t most = UINT64_MAX - 1;
    std::uint64_t taken = 0;
    while (!enough.load()) {
      [[maybe_unused]] auto done = ::read(handed[1].get(), &taken, sizeof taken);
      done = ::write(handed[1].get(), &most, sizeof most);  // nobody else can raise it now
      done = ::read(handed[1].get(), &taken, sizeof taken);
    }
  });
  auto honest = link();
  for (std::uint64_t task = 1; task <= 2000; ++task) {
    ASSERT_TRUE(honest->send({{put_record(task)}}));
    ASSERT_EQ(receive(*honest).number, task);
    ASSERT_TRUE(honest->send({{finished_record(task)}}));
  }
  enough.store(true);
  thief.join();
  // Neither may what it does to what wakes itself.
  ASSERT_EQ(::fcntl(handed[1].get(), F_SETFL, 0), 0);
  ASSERT_EQ(::fcntl(handed[2].get(), F_SETFL, 0), 0);
  EXPECT_EQ(::write(handed[2].get(), "", 1), -1) << "it could fill it, and the daemon would wait";
}

TEST_F(ServerTest, ANameOfAnyBytesIsOneLineOfTheLog) {
  link_settings_.program = "two\nlines \x01\xff";
  auto broken = link();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(broken->send({{put_record(0)}}));
  EXPECT_TRUE(gone(*broken));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(R"(("two\u000alines \u0001\ufffd") is disconnected: )"), std::string::npos)
      << log;
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
}

TEST_F(ServerTest, WhatAClientHeldIsFreeWhenItHasGone) {
  auto waiting = link();
  for (std::uint64_t task = 1; task <= 50; ++task) {
    auto dying = link();
    ASSERT_TRUE(dying->send({{put_record(1)}}));
    ASSERT_EQ(receive(*dying).number, 1U);  // it holds the device
    ASSERT_TRUE(waiting->send({{put_record(task)}}));
    dying.reset();
    ASSERT_EQ(receive(*waiting).number, task);
    ASSERT_TRUE(waiting->send({{finished_record(task)}}));
  }
}

TEST_F(ServerTest, AnotherVersionIsRefusedWithASentence) {
  auto socket = os::connect_to_path(path_);
  ASSERT_TRUE(socket.ok());
  HelloPacket hello;
  hello.version = 77;
  ASSERT_TRUE(
      os::send_packet(socket.value().get(), std::as_bytes(std::span(&hello, 1)), {}).ok());
  const int number = socket.value().get();
  os::wait_readable(&number, 1, -1);
  RefusedPacket refused;
  auto got = os::receive_packet(number, std::as_writable_bytes(std::span(&refused, 1)));
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(refused.code, static_cast<std::uint32_t>(EPROTONOSUPPORT));
  EXPECT_NE(text_of(refused.sentence).find("version 77"), std::string::npos);
}

TEST_F(ServerTest, SharedSegmentsAreFoundByNameAndGoWithTheirUsers) {
  const auto open = [](Link& link, bool create) {
    OpenSharedPacket packet;
    set_text(packet.name, "field");
    packet.size = create ? 4096 : 0;
    packet.create = create ? 1 : 0;
    os::Descriptor memory;
    if (create) memory = std::move(os::make_sealed_memory("test", 4096)).value();
    const int handed = memory.get();
    EXPECT_TRUE(link.send_packet(packet, std::span(&handed, create ? 1 : 0)).ok());
    const int socket = link.socket();
    os::wait_readable(&socket, 1, -1);
    auto received = link.receive_packet();
    EXPECT_TRUE(received.ok() && received.value().has_value());
    SharedPacket reply;
    EXPECT_TRUE(received.value()->read(&reply));
    EXPECT_EQ(received.value()->descriptors.size(), reply.code == 0 ? 1U : 0U);
    return reply;
  };
  auto first = link(), second = link();
  EXPECT_EQ(open(*second, false).code, static_cast<std::uint32_t>(ENOENT));
  EXPECT_EQ(open(*first, true).code, 0U);
  const SharedPacket found = open(*second, false);
  EXPECT_EQ(found.size, 4096U);
  EXPECT_EQ(found.users, 2U);
  first.reset();
  auto third = link();
  EXPECT_EQ(open(*third, false).code, 0U);
  second.reset();
  third.reset();
  auto fourth = link();
  EXPECT_EQ(open(*fourth, false).code, static_cast<std::uint32_t>(ENOENT));
}

TEST_F(ServerTest, AnObserverIsToldTheState) {
  auto client = link();
  ASSERT_TRUE(client->send({{put_record(1)}}));
  ASSERT_EQ(receive(*client).number, 1U);
  link_settings_.role = Role::kObserver;
  auto made = Link::open(link_settings_, {});
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(made.value()->send_packet(QueryPacket{}).ok());
  const int socket = made.value()->socket();
  os::wait_readable(&socket, 1, -1);
  auto received = made.value()->receive_packet();
  ASSERT_TRUE(received.ok() && received.value().has_value());
  AnswerPacket packet;
  ASSERT_TRUE(received.value()->read(&packet));
  const std::string text(packet.text, packet.length);
  EXPECT_EQ(packet.last, 1U);
  EXPECT_NE(text.find(R"("policy":"in-order")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("identity":"host")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("queued":0,"running":1)"), std::string::npos) << text;
}

TEST_F(ServerTest, DrainsBeforeItEnds) {
  auto client = link();
  ASSERT_TRUE(client->send({{put_record(1)}}));
  ASSERT_EQ(receive(*client).number, 1U);
  ASSERT_TRUE(client->send({{put_record(2)}}));
  // So that the second is there when it drains.
  ASSERT_TRUE(client->send_packet(QueryPacket{}).ok());
  const int socket = client->socket();
  os::wait_readable(&socket, 1, -1);
  ASSERT_TRUE(client->receive_packet().ok());
  stop_.raise();
  EXPECT_EQ(receive(*client).kind, RecordKind::kDraining);
  ASSERT_TRUE(client->send({{put_record(3)}}));
  const ShortRecord refused = receive(*client);
  EXPECT_EQ(refused.kind, RecordKind::kRefuse);
  EXPECT_EQ(refused.number, 3U);
  ASSERT_TRUE(client->send({{finished_record(1)}}));
  EXPECT_EQ(receive(*client).number, 2U);
  ASSERT_TRUE(client->send({{finished_record(2)}}));
  EXPECT_TRUE(gone(*client));
  EXPECT_FALSE(os::connect_to_path(path_).ok());
}

}  // namespace
}  // namespace amasia::devices
