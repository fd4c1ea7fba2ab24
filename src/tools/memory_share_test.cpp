// SPDX-License-Identifier: Apache-2.0
#include "tools/memory_share.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

namespace amasia::tools {
namespace {

namespace fs = std::filesystem;

class HostMemory : public testing::Test {
 protected:
  void SetUp() override {
    write("proc/meminfo", "MemTotal:        1000000 kB\nMemFree:  5 kB\n");
  }
  void write(const fs::path& file, const char* text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  const tests::TemporaryFolder folder_{"memory"};
  const fs::path root_ = folder_.path();
};

TEST_F(HostMemory, IsThePhysicalOneWithoutControlGroups) {
  EXPECT_EQ(host_memory(root_), 1'000'000 * base::kKiB);
}

TEST_F(HostMemory, IsTheLeastThatAGroupOrOneAboveAllows) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  EXPECT_EQ(host_memory(root_), 1'000'000 * base::kKiB);
  write("sys/fs/cgroup/jobs/memory.max", "300000000\n");
  EXPECT_EQ(host_memory(root_), 300'000'000U);
  write("sys/fs/cgroup/jobs/one/memory.max", "200000000\n");
  EXPECT_EQ(host_memory(root_), 200'000'000U);
  write("sys/fs/cgroup/memory.max", "100000000\n");
  EXPECT_EQ(host_memory(root_), 100'000'000U);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "50000000\n");
  EXPECT_EQ(host_memory(root_), 50'000'000U);
}

TEST_F(HostMemory, GroupsOfTheFirstVersionCountToo) {
  write("proc/self/cgroup", "5:cpu:/other\n4:memory:/jobs/one\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(host_memory(root_), 1'000'000 * base::kKiB);
  write("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "300000000\n");
  write("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "200000\n");
  EXPECT_EQ(host_memory(root_), 300'000'000U);
  write("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "200000000\n");
  EXPECT_EQ(host_memory(root_), 200'000'000U);
}

TEST_F(HostMemory, ItsEndIsCountedByTheKernel) {
  EXPECT_EQ(kills_for_memory(root_), 0U);
  write("proc/vmstat", "pgfault 7\noom_kill 12\ndrop_pagecache 0\n");
  EXPECT_EQ(kills_for_memory(root_), 12U);
}

TEST_F(HostMemory, IsZeroWhereNothingTells) { EXPECT_EQ(host_memory(root_ / "nothing"), 0U); }

TEST(MemoryShare, LeavesAnEighth) {
  EXPECT_EQ(memory_share(8 * base::kGiB, 1), 7 * base::kGiB);
  EXPECT_EQ(memory_share(8 * base::kGiB, 2), 7 * base::kGiB / 2);
}

}  // namespace
}  // namespace amasia::tools
