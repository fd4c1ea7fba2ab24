// SPDX-License-Identifier: Apache-2.0
#include "base/emulation.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/ids.hpp"

namespace amasia::base {
namespace {

TEST(Numbers, AreOneForEachNode) {
  EXPECT_EQ(parse_numbers("1,0.33", 0.001, 1000), (std::vector<double>{1, 0.33}));
  EXPECT_EQ(parse_numbers("200", 0.001, 1000), (std::vector<double>{200}));
  for (const char* const text : {"", "1,0", "1001", "nan", "1e2", "1,", ",1"}) {
    EXPECT_EQ(parse_numbers(text, 0.001, 1000), std::nullopt) << text;
  }
}

TEST(Shares, AreOneForEachNode) {
  EXPECT_EQ(parse_shares("1.0,0.33"), (std::vector<double>{1.0, 0.33}));
  EXPECT_EQ(parse_shares("1"), (std::vector<double>{1.0}));
  EXPECT_EQ(parse_shares(".5,1,0.01"), (std::vector<double>{0.5, 1, 0.01}));
}

TEST(Shares, OutsideOfACoreAreRefused) {
  for (const char* text : {"", "0", "0.0", "-0.5", "1.01", "2", "0.009", "1.0,,0.5", ",1", "1,",
                           "1.0;0.5", "fast", "inf", "nan", "1e-1", "0x1", " 1", "1 ", "."}) {
    EXPECT_EQ(parse_shares(text), std::nullopt) << text;
  }
}

TEST(Shares, AreNoMoreThanNodesCanBe) {
  std::string text = "0.5";
  for (std::size_t node = 1; node < kMaxNodes; ++node) text += ",0.5";
  ASSERT_TRUE(parse_shares(text).has_value());
  EXPECT_EQ(parse_shares(text)->size(), kMaxNodes);
  EXPECT_EQ(parse_shares(text + ",0.5"), std::nullopt);
}

TEST(Link, HasLatencyAndBandwidth) {
  ASSERT_TRUE(parse_link("50,200").has_value());
  EXPECT_EQ(parse_link("50,200")->latency, 50 * kMicrosecond);
  EXPECT_DOUBLE_EQ(parse_link("50,200")->bytes_per_ns, 0.2);
  EXPECT_EQ(parse_link("7")->bytes_per_ns, 0);
  EXPECT_EQ(parse_link("0,10")->latency, 0);
  EXPECT_FALSE(parse_link("")->is_slowed());
}

TEST(Link, BadOnesAreRefused) {
  for (const char* text : {"0", "-1", "slow", "50,", "50,0", "50,-3", ",50", "50,200,1", "0,0",
                           "1.5", "1000001", "50,100001", "50 ", "99999999999999999999"}) {
    EXPECT_EQ(parse_link(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace amasia::base
