// SPDX-License-Identifier: Apache-2.0
// A client whose daemon ends at a bad moment: a thread of the test plays the daemon.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

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

// The grant lies in the ring of a client that is asleep, and what wakes it is the daemon's end:
// the task was granted, so it runs, though no more records will come.
TEST(LostDaemon, WhatItGrantedLastIsRun) {
  std::string folder = testing::TempDir() + "amasia-lost-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (int round = 0; round < 20; ++round) {
    ClientSettings settings;
    settings.link.connect.path = folder + "/devices.sock";
    settings.link.connect.start_daemon = false;
    auto listening = os::listen_at_path(settings.link.connect.path, 0600);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    DaemonEnd daemon;
    std::thread thread([&] { daemon.welcome(listening.value().get()); });
    Backends backends;
    backends.all.push_back(std::make_unique<AtOnce>());
    auto client = Client::start(settings, std::move(backends));
    thread.join();
    ASSERT_TRUE(client.ok()) << client.error().message;

    auto task = std::make_shared<Task>(client.value().get());
    const Fault wrong = client.value()->submit(task, {});
    ASSERT_FALSE(wrong) << wrong.reason;
    RingConsumer from_client(&daemon.region->to_daemon);
    Record record;
    ASSERT_EQ(from_client.pop(&record), RingState::kOk);
    while (daemon.region->to_client.control.sleeps.load() == kAwake) os::yield_core();
    RingProducer to_client(&daemon.region->to_client);
    ASSERT_EQ(to_client.push(short_record(RecordKind::kGrant, record.as<PutRecord>().task)),
              RingState::kOk);
    task->sleepers.fetch_add(1);  // as wait() does, which would read the ring itself before
    to_client.publish();  // and dies before it wakes anybody
    daemon.socket.close();
    listening.value().close();
    std::filesystem::remove(settings.link.connect.path);

    const Nanos deadline = os::monotonic_now() + kPatience;
    while (task->ended.load() == 0 && os::monotonic_now() < deadline) {
      os::futex_wait(task->ended, 0, std::max<Nanos>(deadline - os::monotonic_now(), 0));
    }
    ASSERT_EQ(task->ended.load(), 1U) << "round " << round;
    EXPECT_FALSE(task->failure) << task->failure.reason;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace amasia::devices
