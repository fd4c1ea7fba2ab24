// SPDX-License-Identifier: Apache-2.0
#include "tools/core_shares.hpp"

#include <gtest/gtest.h>

namespace amasia::tools {
namespace {

using Cores = std::vector<int>;

TEST(CoreShares, AreNeighboursAndAsEvenAsTheyCanBe) {
  const Cores cores = {0, 1, 2, 5, 6};
  EXPECT_EQ(core_share(cores, 0, 1), cores);
  EXPECT_EQ(core_share(cores, 0, 2), (Cores{0, 1, 2}));
  EXPECT_EQ(core_share(cores, 1, 2), (Cores{5, 6}));
  EXPECT_EQ(core_share(cores, 2, 3), (Cores{6}));
}

TEST(CoreShares, TakeTurnsWhereCoresAreFew) {
  const Cores cores = {3, 4};
  EXPECT_EQ(core_share(cores, 0, 3), (Cores{3}));
  EXPECT_EQ(core_share(cores, 1, 3), (Cores{4}));
  EXPECT_EQ(core_share(cores, 2, 3), (Cores{3}));
  EXPECT_EQ(core_share({}, 0, 3), Cores{});
}

TEST(CoreShares, CoverEveryCoreOnce) {
  for (std::size_t total = 1; total < 20; ++total) {
    Cores cores;
    for (std::size_t core = 0; core < total; ++core) cores.push_back(static_cast<int>(core));
    for (std::size_t count = 1; count <= total; ++count) {
      Cores seen;
      for (std::size_t index = 0; index < count; ++index) {
        const Cores share = core_share(cores, index, count);
        seen.insert(seen.end(), share.begin(), share.end());
      }
      EXPECT_EQ(seen, cores) << total << " cores, " << count << " shares";
    }
  }
}

}  // namespace
}  // namespace amasia::tools
