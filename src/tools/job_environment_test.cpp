// SPDX-License-Identifier: Apache-2.0
#include "tools/job_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace amasia::tools {
namespace {

using Entries = std::vector<std::string>;

TEST(JobEnvironment, KeepsTheUsersAndAddsOurs) {
  const char* environment[] = {"HOME=/home/x",           "LD_PRELOAD=/a.so /b.so",
                               "AMASIA_THREADS=9",       "PMIX_RANK=3",
                               "OMPI_COMM_WORLD_SIZE=2", "UCX_TLS=tcp",
                               "LD_BIND_NOW=",           nullptr};
  base::Options options;
  options.nodes = 3;
  EXPECT_EQ(job_environment(environment, options, {"/l/libamasia.so", "name", true}),
            (Entries{"HOME=/home/x", "UCX_TLS=tcp", "LD_PRELOAD=/l/libamasia.so:/a.so:/b.so",
                     "LD_BIND_NOW=1", "AMASIA_NODES=3", "AMASIA_LAUNCHER=name"}));
}

TEST(JobEnvironment, LeavesTheProgramInAJobThatWeHaveNotJoined) {
  const char* environment[] = {"PMIX_RANK=3", "OMPI_COMM_WORLD_SIZE=2", nullptr};
  const Entries entries = job_environment(environment, {}, {"/l/libamasia.so", "name", false});
  EXPECT_EQ(entries[0], "PMIX_RANK=3");
  EXPECT_EQ(entries[1], "OMPI_COMM_WORLD_SIZE=2");
}

TEST(JobEnvironment, PreloadsItselfOnce) {
  const char* environment[] = {"LD_PRELOAD=/l/libamasia.so:/b.so:", nullptr};
  const Entries entries = job_environment(environment, {}, {"/l/libamasia.so", "name"});
  EXPECT_EQ(entries.front(), "LD_PRELOAD=/l/libamasia.so:/b.so");
}

TEST(JobEnvironment, LetsThreadsOfEmulatedNodesSleepUnlessTheUserSaysOtherwise) {
  base::Options options;
  options.emulate = "1.0,0.5";
  const auto waits = [&](const char* entry) {
    const char* environment[] = {entry, nullptr};
    const Entries entries = job_environment(environment, options, {"/l/libamasia.so", "name"});
    return std::count(entries.begin(), entries.end(), "OMP_WAIT_POLICY=passive");
  };
  EXPECT_EQ(waits("HOME=/"), 1);
  EXPECT_EQ(waits("OMP_WAIT_POLICY=active"), 0);
  EXPECT_EQ(waits("KMP_BLOCKTIME=200"), 0);
  EXPECT_EQ(waits("GOMP_SPINCOUNT=5"), 0);
  options.emulate.clear();
  EXPECT_EQ(waits("HOME=/"), 0);
}

TEST(PlainEnvironment, IsTheUsersWithNoMoreThreadsThanAskedFor) {
  base::Options options;
  const auto given = [&](const char* entry) {
    const char* environment[] = {"HOME=/", "AMASIA_THREADS=3", entry, nullptr};
    return plain_environment(environment, options);
  };
  EXPECT_EQ(given("OMP_NUM_THREADS=8"), (Entries{"HOME=/", "AMASIA_THREADS=3",
                                                 "OMP_NUM_THREADS=8"}));
  options.threads = 3;
  EXPECT_EQ(given(nullptr).back(), "OMP_NUM_THREADS=3");
  EXPECT_EQ(given("OMP_NUM_THREADS=8").back(), "OMP_NUM_THREADS=3");
  EXPECT_EQ(given("OMP_NUM_THREADS=8,2").back(), "OMP_NUM_THREADS=3,2");
  EXPECT_EQ(given("OMP_NUM_THREADS=2").back(), "OMP_NUM_THREADS=2");
  EXPECT_EQ(given("OMP_NUM_THREADS=many").back(), "OMP_NUM_THREADS=many");
  EXPECT_EQ(given("OMP_NUM_THREADS=").back(), "OMP_NUM_THREADS=");
}

TEST(PlainEnvironment, HidesAScheduleThatTheProgramsRuntimeDoesNotKnow) {
  const char* environment[] = {"OMP_SCHEDULE=hetprobe", "HOME=/", nullptr};
  base::Options options;
  EXPECT_EQ(plain_environment(environment, options).front(), "OMP_SCHEDULE=hetprobe");
  options.runtime_schedule.emplace();
  EXPECT_EQ(plain_environment(environment, options),
            (Entries{"HOME=/", fmt::format("OMP_SCHEDULE={}", base::kScheduleForRuntime)}));
}

}  // namespace
}  // namespace amasia::tools
