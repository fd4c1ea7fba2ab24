// SPDX-License-Identifier: Apache-2.0
// Grants that reach a client at a bad moment: the test plays the daemon.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

constexpr Nanos kPatience = 10 * base::kSecond;

// One device, on which everything has ended when it is submitted.
class AtOnce final : public Backend {
 public:
  AtOnce() : devices_(1) { devices_[0].identity = "at once"; }
  std::string_view name() const override { return "at once"; }
  const std::vector<DeviceDescription>& devices() const override { return devices_; }
  std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode&, const std::string&,
                                     std::size_t, Outcome*) override {
    return nullptr;
  }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes, void*, Outcome*) override {
    return nullptr;
  }
  void submit(const Work&, Completion& completion) override { completion.finished(Outcome{}); }

 private:
  std::vector<DeviceDescription> devices_;
};

// The daemon's end of one connection, as far as the test needs it.
struct DaemonEnd {
  os::Descriptor socket;
  std::uintptr_t address = 0;
  Region* region = nullptr;
  os::Wakeup wakes_daemon, wakes_client;

  void welcome(int listening) {
    ASSERT_NE(os::wait_readable(&listening, 1, kPatience), 0U) << "nobody connects";
    socket = std::move(os::accept_connection(listening)).value();
    std::byte packet[kMaxPacket];
    for (int i = 0; i < 2; ++i) {  // hello, and the device
      const int number = socket.get();
      ASSERT_NE(os::wait_readable(&number, 1, kPatience), 0U);
      ASSERT_TRUE(os::receive_packet(number, packet).ok());
    }
    const auto memory = std::move(os::make_sealed_memory("test", sizeof(Region))).value();
    ASSERT_EQ(os::map_shared(memory.get(), 0, sizeof(Region), os::Placement::kAnywhere, &address),
              0);
    region = new (reinterpret_cast<void*>(address)) Region;
    wakes_daemon = std::move(os::Wakeup::make()).value();
    wakes_client = std::move(os::Wakeup::make()).value();
    const int handed[] = {memory.get(), wakes_daemon.descriptor(), wakes_client.descriptor()};
    WelcomePacket welcome;
    ASSERT_TRUE(
        os::send_packet(socket.get(), std::as_bytes(std::span(&welcome, 1)), handed).ok());
  }
  ~DaemonEnd() {
    if (address != 0) os::unmap(address, sizeof(Region));
  }
};

class Unheard : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "amasia-unheard-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ClientSettings settings;
    settings.link.connect.path = folder_ + "/devices.sock";
    settings.link.connect.start_daemon = false;
    auto listening = os::listen_at_path(settings.link.connect.path, 0600);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    std::thread thread([&] { daemon_.welcome(listening.value().get()); });
    Backends backends;
    backends.all.push_back(std::make_unique<AtOnce>());
    auto client = Client::start(settings, std::move(backends));
    thread.join();
    ASSERT_TRUE(client.ok()) << client.error().message;
    client_ = std::move(client).value();
  }
  void TearDown() override {
    daemon_.socket.close();
    client_.reset();
    std::filesystem::remove_all(folder_);
  }
  // Submits tasks and grants them all, while the client sleeps and is not woken.
  void grant_unheard(int count) {
    RingConsumer from_client(&daemon_.region->to_daemon);
    RingProducer to_client(&daemon_.region->to_client);
    for (int i = 0; i < count; ++i) {
      auto task = std::make_shared<Task>(client_.get());
      const Fault wrong = client_->submit(task, {});
      ASSERT_FALSE(wrong) << wrong.reason;
      task->sleepers.fetch_add(1);  // of whom see_all_end() is one
      tasks_.push_back(std::move(task));
      Record record;
      ASSERT_EQ(from_client.pop(&record), RingState::kOk);
      ASSERT_EQ(to_client.push(short_record(RecordKind::kGrant, record.as<PutRecord>().task)),
                RingState::kOk);
    }
    while (daemon_.region->to_client.control.sleeps.load() == kAwake) os::yield_core();
    to_client.publish();
  }
  // Sees, without Client::wait, which would read the ring and run what it finds.
  void see_all_end() {
    const Nanos deadline = os::monotonic_now() + kPatience;
    for (const auto& task : tasks_) {
      while (task->ended.load() == 0 && os::monotonic_now() < deadline) {
        os::futex_wait(task->ended, 0, std::max<Nanos>(deadline - os::monotonic_now(), 0));
      }
      ASSERT_EQ(task->ended.load(), 1U) << "task " << task->number;
      EXPECT_FALSE(task->failure) << task->failure.reason;
    }
  }

  std::string folder_;
  DaemonEnd daemon_;
  std::unique_ptr<Client> client_;
  std::vector<std::shared_ptr<Task>> tasks_;
};

// The grant lies in the ring of a client that is asleep, and what wakes it is the daemon's end:
// the task was granted, so it runs, though no more records will come.
TEST_F(Unheard, WhatItGrantedLastIsRun) {
  grant_unheard(1);
  daemon_.socket.close();
  see_all_end();
}

// Who waits for one task reads the grants of many, and goes when that one has ended: somebody else
// runs the others.
TEST_F(Unheard, WhoWaitsForOneTaskDoesNotStrandOthers) {
  grant_unheard(40);
  EXPECT_TRUE(client_->wait(*tasks_.front(), os::monotonic_now() + kPatience));
  see_all_end();
}

}  // namespace
}  // namespace amasia::devices
