// SPDX-License-Identifier: Apache-2.0
// For tests of clients that play the daemon themselves: its end of one connection.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "devices/client/client.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {

// What has not come by then does not come: the test fails instead of waiting.
inline constexpr Nanos kTestPatience = 10 * base::kSecond;

// Used by one thread at a time. Its rings are there once the client is welcome with a memory of
// their size.
struct DaemonEnd {
  os::Descriptor socket;
  std::uintptr_t address = 0;
  Region* region = nullptr;
  std::optional<RingConsumer> from_client;
  std::optional<RingProducer> to_client;
  os::Wakeup wakes_daemon, wakes_client;

  // Reads what a client says that has so many devices.
  void accept(int listening, std::size_t devices) {
    ASSERT_NE(os::wait_readable(&listening, 1, kTestPatience), 0U) << "nobody connects";
    socket = std::move(os::accept_connection(listening)).value();
    alignas(8) std::byte packet[kMaxPacket];
    for (std::size_t i = 0; i < 1 + devices; ++i) {  // hello, and the devices
      const int number = socket.get();
      ASSERT_NE(os::wait_readable(&number, 1, kTestPatience), 0U) << "packet " << i;
      ASSERT_TRUE(os::receive_packet(number, packet).ok());
      HelloPacket hello;
      if (i == 0) std::memcpy(&hello, packet, sizeof hello);
      ASSERT_EQ(hello.magic, kProtocolMagic);
    }
  }
  void send(const WelcomePacket& welcome, int memory) {
    wakes_daemon = std::move(os::Wakeup::make()).value();
    wakes_client = std::move(os::Wakeup::make()).value();
    const int handed[] = {memory, wakes_daemon.descriptor(), wakes_client.descriptor()};
    ASSERT_TRUE(
        os::send_packet(socket.get(), std::as_bytes(std::span(&welcome, 1)), handed).ok());
  }
  void welcome(const WelcomePacket& packet) {
    const auto memory = std::move(os::make_sealed_memory("test", sizeof(Region))).value();
    ASSERT_EQ(os::map_shared(memory.get(), 0, sizeof(Region), os::Placement::kAnywhere, &address),
              0);
    region = new (reinterpret_cast<void*>(address)) Region;
    from_client.emplace(&region->to_daemon);
    to_client.emplace(&region->to_client);
    send(packet, memory.get());
  }
  ~DaemonEnd() {
    if (address != 0) os::unmap(address, sizeof(Region));
  }
};

// A folder of its own, and in it the socket at which the test listens.
class PlayedDaemon : public testing::Test {
 protected:
  void TearDown() override {
    daemon_.socket.close();
    client_.reset();
  }
  // How a client, or a link, finds it.
  LinkSettings link_settings() const {
    LinkSettings settings;
    settings.connect.path = folder_ / "devices.sock";
    settings.connect.start_daemon = false;
    return settings;
  }
  // Calls `body` with the socket on a thread, while `connects` runs on this one.
  template <typename Body, typename Connects>
  void listen(const Body& body, const Connects& connects) {
    const std::string path = link_settings().connect.path;
    auto listening = os::listen_at_path(path, 0600);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    std::thread thread([&] { body(listening.value().get()); });
    connects();
    thread.join();
    std::filesystem::remove(path);
  }
  void start_client(std::unique_ptr<Backend> backend, std::uint32_t run_most = 1,
                    unsigned workers = 1) {
    const std::size_t devices = backend->devices().size();
    WelcomePacket packet;
    packet.run_most = run_most;
    const auto body = [&](int listening) {
      daemon_.accept(listening, devices);
      daemon_.welcome(packet);
    };
    listen(body, [&] {
      ClientSettings settings;
      settings.link = link_settings();
      settings.workers = workers;
      Backends backends;
      backends.all.push_back(std::move(backend));
      auto client = Client::start(settings, std::move(backends));
      ASSERT_TRUE(client.ok()) << client.error().message;
      client_ = std::move(client).value();
    });
  }

  const tests::TemporaryFolder folder_{"played"};
  DaemonEnd daemon_;
  std::unique_ptr<Client> client_;
};

}  // namespace amasia::devices
