// SPDX-License-Identifier: Apache-2.0
#include "os/free_memory.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "os/private_directory.hpp"

namespace amasia::os {
namespace {

TEST(FreeMemory, IsWhatTheKernelTells) {
  const FreeMemory free = parse_free_memory(
      "MemTotal:  100 kB\nMemAvailable:   7 kB\nSwapCached:  5 kB\nSwapFree:        3 kB\n");
  EXPECT_EQ(free.available, 7 * base::kKiB);
  EXPECT_EQ(free.swap, 3 * base::kKiB);
  EXPECT_EQ(parse_free_memory("MemTotal: 5 kB\nMemAvailable:").available, 0U);
  EXPECT_EQ(parse_free_memory("").swap, 0U);
  EXPECT_GT(free_memory().available, base::kMiB);
}

// Asked for it all, the kernel would take every page that there is before it said no.
TEST(FreeMemory, SealedMemoryBeyondItIsRefusedBeforeAnyIsTaken) {
  const auto made = make_sealed_memory("test", Bytes{1} << 50);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ENOMEM);
  EXPECT_NE(made.error().message.find("1125899906842624 bytes of shared memory"),
            std::string::npos)
      << made.error().message;
  EXPECT_TRUE(make_sealed_memory("test", 4096).ok());
}

}  // namespace
}  // namespace amasia::os
