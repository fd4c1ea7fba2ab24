// SPDX-License-Identifier: Apache-2.0
// A link to something that answers as a daemon does, but is another one.
#include "devices/client/link.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace amasia::devices {
namespace {

// What has not come by then does not come: the test fails instead of waiting.
constexpr Nanos kPatience = 10 * base::kSecond;

class LinkTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "amasia-link-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // What a program is told by a daemon that hands out such memory after the handshake.
  Status opened_with(os::Descriptor memory) {
    LinkSettings settings;
    settings.connect.path = folder_ + "/devices.sock";
    settings.connect.start_daemon = false;
    auto listening = os::listen_at_path(settings.connect.path, 0600);
    if (!listening.ok()) return listening.error();
    std::thread daemon([&] { welcome_one(listening.value().get(), memory.get()); });
    auto link = Link::open(settings, {});
    daemon.join();
    std::filesystem::remove(settings.connect.path);
    if (!link.ok()) return link.error();
    return base::ok();
  }

 private:
  static void welcome_one(int listening, int memory) {
    ASSERT_NE(os::wait_readable(&listening, 1, kPatience), 0u) << "nobody connects";
    auto connection = os::accept_connection(listening);
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    const int number = connection.value().get();
    ASSERT_NE(os::wait_readable(&number, 1, kPatience), 0u) << "nobody says hello";
    HelloPacket hello;
    auto got = os::receive_packet(number, std::as_writable_bytes(std::span(&hello, 1)));
    ASSERT_TRUE(got.ok() && hello.magic == kProtocolMagic);
    auto wakeup = os::Wakeup::make();
    ASSERT_TRUE(wakeup.ok()) << wakeup.error().message;
    WelcomePacket welcome;
    welcome.daemon_process = 4711;
    const int handed[] = {memory, wakeup.value().descriptor(), wakeup.value().descriptor()};
    EXPECT_TRUE(os::send_packet(number, std::as_bytes(std::span(&welcome, 1)), handed).ok());
  }

  std::string folder_;
};

os::Descriptor memory_of(Bytes size) {
  return std::move(os::make_sealed_memory("test", size)).value();
}

TEST_F(LinkTest, OpensWithMemoryOfItsOwnLayout) {
  const Status opened = opened_with(memory_of(sizeof(Region)));
  EXPECT_TRUE(opened.ok()) << opened.error().message;
}

TEST_F(LinkTest, ADaemonOfAnotherBuildIsNamedWithWhatDiffers) {
  for (const Bytes size : {Bytes{64}, sizeof(Region) - 64, sizeof(Region) + 64}) {
    const Status opened = opened_with(memory_of(size));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, EPROTONOSUPPORT);
    const std::string& told = opened.error().message;
    EXPECT_NE(told.find("the daemon (process 4711)"), std::string::npos) << told;
    EXPECT_NE(told.find("of different builds"), std::string::npos) << told;
    EXPECT_NE(told.find(fmt::format("{} and {} bytes", size, sizeof(Region))), std::string::npos)
        << told;
  }
}

TEST_F(LinkTest, WhatIsNoSealedMemoryIsRefused) {
  const Status opened = opened_with(os::Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, EPROTONOSUPPORT);
  EXPECT_NE(opened.error().message.find("not of sealed memory"), std::string::npos);
}

}  // namespace
}  // namespace amasia::devices
