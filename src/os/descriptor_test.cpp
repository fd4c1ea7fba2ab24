// SPDX-License-Identifier: Apache-2.0
#include "os/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/os.hpp"

namespace amasia::os {
namespace {

TEST(PassOn, TakesWhatIsInThePipeAndWaitsForNoMore) {
  auto from = make_pipe();
  auto to = make_pipe();
  ASSERT_TRUE(from.ok() && to.ok());
  ASSERT_NE(fcntl(to.value().second.get(), F_SETPIPE_SZ, 1 << 20), -1);
  const std::string text(50'000, 'x');
  ASSERT_EQ(write(from.value().second.get(), text.data(), text.size()), 50'000);
  pass_on(from.value().first.get(), to.value().second.get());  // its writer is still there
  to.value().second.close();
  EXPECT_EQ(read_to_end(to.value().first, 1 << 20).value(), text);
}

TEST(PassOn, GivesUpWhereNobodyTakesIt) {
  auto from = make_pipe();
  auto to = make_pipe();
  ASSERT_TRUE(from.ok() && to.ok());
  const int full = fcntl(to.value().second.get(), F_SETPIPE_SZ, 4096);
  ASSERT_EQ(fcntl(to.value().second.get(), F_SETFL, 0), 0) << "as a program's output may be";
  const std::string text(50'000, 'x');
  ASSERT_EQ(write(from.value().second.get(), text.data(), text.size()), 50'000);
  pass_on(from.value().first.get(), to.value().second.get());
  to.value().second.close();
  EXPECT_EQ(read_to_end(to.value().first, 1 << 20).value(), std::string(full, 'x'));
}

}  // namespace
}  // namespace amasia::os
