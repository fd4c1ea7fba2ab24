// SPDX-License-Identifier: Apache-2.0
#include "os/cpu_quota.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "os/clock.hpp"

namespace amasia::os {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(CpuQuota, IsTheShortestThatTheKernelTakesAndExact) {
  for (int percent = 1; percent <= 100; ++percent) {
    const CpuQuota quota = quota_of(percent / 100.0);
    EXPECT_GE(quota.runtime_us, 1000);
    EXPECT_GE(quota.period_us, 1000);
    EXPECT_LE(quota.period_us, 1000 * 1000);
    const double share =
        static_cast<double>(quota.runtime_us) / static_cast<double>(quota.period_us);
    EXPECT_NEAR(share, percent / 100.0, 0.0005);
  }
}

constexpr const char* kFirstVersion =
    "22 1 0:20 / /proc rw,nosuid - proc proc rw\n"
    "30 22 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "31 22 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 22 0:28 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";

TEST(CpuHierarchy, OfTheFirstVersionIsTheOneWithTheController) {
  const auto found =
      find_cpu_hierarchy(kFirstVersion, "9:memory:/m\n4:cpu,cpuacct:/user/me\n0::/u\n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->version, 1);
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/cpu,cpuacct/user/me");
  EXPECT_EQ(find_cpu_hierarchy(kFirstVersion, "4:cpu:/\n")->folder, "/sys/fs/cgroup/cpu,cpuacct");
  // cpuset and cpuacct are other controllers.
  EXPECT_EQ(find_cpu_hierarchy(kFirstVersion, "3:cpuset:/\n2:cpuacct:/\n"), std::nullopt);
}

TEST(CpuHierarchy, OfTheSecondVersionIsTheOnlyOne) {
  const auto found = find_cpu_hierarchy(
      "40 30 0:30 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n",
      "0::/user.slice/run-7.scope\n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->version, 2);
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/user.slice/run-7.scope");
}

TEST(CpuHierarchy, OfAContainerBeginsAtTheMountsRoot) {
  const auto found = find_cpu_hierarchy(
      "40 30 0:30 /docker/77 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
      "5:cpu:/docker/77/a\n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->folder, "/sys/fs/cgroup/cpu/a");
}

TEST(CpuHierarchy, MayNotBeThere) {
  EXPECT_EQ(find_cpu_hierarchy("", ""), std::nullopt);
  EXPECT_EQ(find_cpu_hierarchy("nonsense\n1 2 3\n", "0::/\n"), std::nullopt);
  EXPECT_EQ(find_cpu_hierarchy("22 1 0:20 / /proc rw - proc proc rw\n", "0::/\n"), std::nullopt);
}

TEST(CpuGroups, OfAnImpossiblePlaceAreASentenceAndLeaveNothing) {
  const CpuQuota quota = quota_of(0.5);
  const auto none = CpuGroups::make({1, "/not/there"}, "amasia-test", std::span(&quota, 1));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("/not/there/amasia-test"), std::string::npos);
  EXPECT_NE(none.error().message.find("needs root"), std::string::npos);
  // A place that takes folders but no quotas: what was made goes.
  const std::string place = testing::TempDir() + fmt::format("cpu_groups_{}", ::getpid());
  std::filesystem::create_directory(place);
  const auto half = CpuGroups::make({1, place}, "amasia-test", std::span(&quota, 1));
  EXPECT_FALSE(half.ok());
  EXPECT_TRUE(std::filesystem::is_empty(place));
  std::filesystem::remove(place);
}

TEST(CpuGroups, HoldAThreadToItsShare) {
  const auto hierarchy =
      find_cpu_hierarchy(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup"));
  if (!hierarchy) GTEST_SKIP() << "no control groups with a CPU quota here";
  const std::vector<CpuQuota> quotas{quota_of(0.5), quota_of(0.25)};
  auto made = CpuGroups::make(*hierarchy, fmt::format("amasia-test-{}", ::getpid()), quotas);
  if (!made.ok()) GTEST_SKIP() << made.error().message;
  const std::vector<std::string> folders = made.value().folders();
  EXPECT_EQ(folders.size(), 3u);
  {
    const CpuGroups groups = std::move(made).value();
    Nanos used = 0, elapsed = 0;
    std::thread([&] {
      ASSERT_EQ(enter_cpu_group(groups.entry(1).c_str()), 0);
      const Nanos begin = monotonic_now();
      const Nanos before = thread_cpu_time(current_thread_id());
      while (used < 50 * base::kMillisecond) {
        used = thread_cpu_time(current_thread_id()) - before;
      }
      elapsed = monotonic_now() - begin;
    }).join();
    // At most its share, whatever else runs; what it may have saved up or overrun is 10 ms.
    EXPECT_LE(static_cast<double>(used - 10 * base::kMillisecond),
              0.25 * static_cast<double>(elapsed));
  }
  for (const std::string& folder : folders) EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

}  // namespace
}  // namespace amasia::os
