// SPDX-License-Identifier: Apache-2.0
// A link to something that answers as a daemon does, but is another one.
#include "devices/client/link.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "devices/client/test_daemon.hpp"

namespace amasia::devices {
namespace {

class LinkTest : public PlayedDaemon {
 protected:
  // What a program is told by a daemon that hands out such memory after the handshake.
  Status opened_with(os::Descriptor memory) {
    Status opened = base::ok();
    const auto body = [&](int listening) {
      WelcomePacket welcome;
      welcome.daemon_process = 4711;
      daemon_.accept(listening, 0);
      daemon_.send(welcome, memory.get());
    };
    listen(body, [&] {
      auto link = Link::open(link_settings(), {});
      if (!link.ok()) opened = link.error();
    });
    return opened;
  }
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

// A daemon that is stopped: it is there, so none is started, and its socket stays. Its queue may be
// full of those who have come since.
TEST_F(LinkTest, WhoDoesNotAnswerKeepsItsSocketAndIsNotReplaced) {
  LinkSettings settings = link_settings();
  settings.connect.start_daemon = true;
  settings.connect.executable = folder_ / "no daemon";
  settings.answer_limit = base::kMillisecond;
  const std::string& path = settings.connect.path;
  const auto listening = std::move(os::listen_at_path(path, 0600)).value();
  ASSERT_EQ(::listen(listening.get(), 0), 0) << "room for one";
  for (const int reason : {ETIMEDOUT, EAGAIN}) {
    auto link = Link::open(settings, {});
    ASSERT_FALSE(link.ok());
    EXPECT_EQ(link.error().code, reason) << link.error().message;
    const auto now = os::connect_to_path(path);
    ASSERT_FALSE(now.ok());
    EXPECT_EQ(now.error().code, EAGAIN) << "it is there still, and its queue full";
  }
}

}  // namespace
}  // namespace amasia::devices
