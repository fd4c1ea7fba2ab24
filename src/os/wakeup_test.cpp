// SPDX-License-Identifier: Apache-2.0
#include "os/wakeup.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "os/event_poll.hpp"

namespace amasia::os {
namespace {

TEST(RemoteWakeup, IsSeenAtItsOtherEndUntilItIsCleared) {
  auto raises = RemoteWakeup::make();
  ASSERT_TRUE(raises.ok());
  Wakeup waits(Descriptor(::dup(raises.value().waiting_end())));
  const int descriptor = waits.descriptor();
  EXPECT_FALSE(waits.clear());
  for (int i = 0; i < 5; ++i) raises.value().raise();
  EXPECT_EQ(wait_readable(&descriptor, 1, 0), 1U);
  EXPECT_TRUE(waits.clear());
  EXPECT_EQ(wait_readable(&descriptor, 1, 0), 0U);
}

TEST(RemoteWakeup, WhoWaitsCannotBlockWhoRaises) {
  auto raises = RemoteWakeup::make();
  ASSERT_TRUE(raises.ok());
  Wakeup waits(Descriptor(::dup(raises.value().waiting_end())));
  ASSERT_EQ(::fcntl(waits.descriptor(), F_SETFL, 0), 0);  // no O_NONBLOCK
  EXPECT_EQ(::write(waits.descriptor(), "", 1), -1) << "it could fill the pipe";
  for (int i = 0; i < 100'000; ++i) raises.value().raise();  // more than a pipe takes
  EXPECT_TRUE(waits.clear());
}

TEST(EventPoll, TellsOfEachEdgeThatNobodyTakesAway) {
  auto poll = EventPoll::make();
  auto wakeup = Wakeup::make();
  ASSERT_TRUE(poll.ok() && wakeup.ok());
  ASSERT_TRUE(poll.value().add_edges(wakeup.value().descriptor(), 7).ok());
  std::vector<std::uint64_t> ready;
  for (std::size_t edges = 1; edges <= 3; ++edges) {
    poll.value().wait(0, &ready);
    EXPECT_EQ(ready.size(), edges - 1);
    wakeup.value().raise();
    poll.value().wait(0, &ready);
    EXPECT_EQ(ready, std::vector<std::uint64_t>(edges, 7));
  }
}

}  // namespace
}  // namespace amasia::os
