// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "os/clock.hpp"
#include "os/test_await.hpp"
#include "os/thread.hpp"

namespace amasia::os {
namespace {

TEST(Process, ShowsWhereAThreadWaitsInTheKernel) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<int> id{0};
  std::thread reader([&] {
    set_thread_name("reads-a-pipe");
    id = current_thread_id();
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  });
  await([&] { return id != 0; });
  // It may still be on its way to sleep. Not every system shows where a thread does.
  std::string where;
  const auto is_shown = [&] { return where.find("pipe") != std::string::npos; };
  const Nanos deadline = monotonic_now() + base::kSecond;
  while (!is_shown() && monotonic_now() < deadline) {
    std::ifstream file("/proc/self/task/" + std::to_string(id) + "/wchan");
    std::getline(file, where);
  }
  const pid_t self = ::getpid();
  EXPECT_EQ(waits_in_kernel(self, "reads-a-pipe", is_shown() ? where : "a_pipe"), is_shown());
  EXPECT_FALSE(waits_in_kernel(self, "reads-a-pip", where));
  EXPECT_FALSE(waits_in_kernel(self, "reads-a-pipe", where + "_more"));
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  EXPECT_FALSE(waits_in_kernel(self, "reads-a-pipe", where));
}

}  // namespace
}  // namespace amasia::os
