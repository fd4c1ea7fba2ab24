// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/work_group.hpp"

#include <gtest/gtest.h>

#include <random>

namespace amasia::devices {
namespace {

TEST(WorkGroup, DividesTheWorkWithinTheLimits) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    Work work;
    work.dimensions = 1 + random() % 3;
    for (unsigned d = 0; d < work.dimensions; ++d) work.global[d] = 1 + random() % 700;
    GroupLimits limits;
    limits.most = 1 + random() % 1024;
    for (std::uint64_t& most : limits.most_in) most = 1 + random() % 1024;
    std::uint64_t group[3];
    const std::uint64_t items = choose_group(work, limits, group);
    EXPECT_EQ(items, group[0] * group[1] * group[2]);
    EXPECT_LE(items, std::min<std::uint64_t>(limits.most, 256));
    for (unsigned d = 0; d < 3; ++d) {
      ASSERT_GT(group[d], 0U);
      EXPECT_EQ(work.global[d] % group[d], 0U);
      EXPECT_LE(group[d], limits.most_in[d]);
    }
  }
}

TEST(WorkGroup, IsLargeAndWideInX) {
  const GroupLimits limits = {1024, {1024, 1024, 64}};
  const auto of = [&](std::uint64_t x, std::uint64_t y, unsigned dimensions) {
    Work work;
    work.dimensions = dimensions;
    work.global[0] = x;
    work.global[1] = y;
    std::vector<std::uint64_t> group(3);
    choose_group(work, limits, group.data());
    return group;
  };
  using Group = std::vector<std::uint64_t>;
  EXPECT_EQ(of(1 << 20, 1, 1), (Group{256, 1, 1}));
  EXPECT_EQ(of(64, 64, 2), (Group{64, 4, 1}));
  EXPECT_EQ(of(1000, 1000, 2), (Group{250, 1, 1}));
  EXPECT_EQ(of(257, 8, 2), (Group{1, 8, 1}));
}

}  // namespace
}  // namespace amasia::devices
