// SPDX-License-Identifier: Apache-2.0
// For tests of a client with a real daemon, on a thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "devices/client/client.hpp"
#include "devices/daemon/server.hpp"
#include "devices/daemon/test_stop.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {

// What the daemon has heard of, by the server's thread; read after it.
struct HeardTasks final : TaskSink {
  void client_joined(ClientId, const ClientState&) override {}
  void kernel_named(const KernelNamed&) override {}
  void ended(const TaskEnded& task, const DeviceDescription&) override {
    tasks += task.count;
    failed += task.failed;
    longest = std::max(longest, task.count);
  }
  std::uint32_t tasks = 0, failed = 0, longest = 0;
};

// Made by begin(), over by end(); once.
class ServedClient {
 public:
  void begin(std::unique_ptr<Backend> backend, const char* policy_settings) {
    ServerSettings server_settings;
    server_settings.own_path = socket();
    auto listening = os::listen_at_path(server_settings.own_path, 0600);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    auto policy = std::move(make_policy("", policy_settings)).value();
    server_ = std::make_unique<Server>(server_settings, std::move(listening).value(),
                                       std::move(policy), &heard_);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(stop_).ok()); });
    ClientSettings client_settings;
    client_settings.link.connect.path = server_settings.own_path;
    client_settings.link.connect.start_daemon = false;
    Backends backends;
    backends.all.push_back(std::move(backend));
    auto client = Client::start(client_settings, std::move(backends));
    ASSERT_TRUE(client.ok()) << client.error().message;
    client_ = std::move(client).value();
  }
  Client& client() { return *client_; }
  std::string socket() const { return folder_ / "devices.sock"; }
  // The client first, then the daemon, and what that has heard of until then.
  const HeardTasks& end() {
    client_.reset();
    stop_.raise();
    thread_.join();
    return heard_;
  }

 private:
  const tests::TemporaryFolder folder_{"served"};
  HeardTasks heard_;
  Stop stop_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::unique_ptr<Client> client_;
};

}  // namespace amasia::devices
