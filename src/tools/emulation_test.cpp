// SPDX-License-Identifier: Apache-2.0
#include "tools/emulation.hpp"

#include <gtest/gtest.h>

namespace amasia::tools {
namespace {

std::string refusal(std::vector<const char*> arguments, bool pmix = false) {
  base::Options options;
  EXPECT_TRUE(base::parse_arguments(arguments, options).ok());
  const Status settled = settle_emulation(options, pmix);
  return settled.ok() ? "" : settled.error().message;
}

TEST(CoreSpeeds, AreOneForEachNode) {
  base::Options options;
  EXPECT_TRUE(check_sharing(options).ok());
  const std::vector<const char*> arguments{"-n2", "--csr=1,0.5,0.3"};
  ASSERT_TRUE(base::parse_arguments(arguments, options).ok());
  EXPECT_EQ(check_sharing(options).error().message,
            "--csr: '1,0.5,0.3' is not allowed; it takes 2 numbers, one for each node");
  options.nodes = 3;
  EXPECT_TRUE(check_sharing(options).ok());
}

TEST(Threshold, NeedsACalibration) {
  base::Options options;
  options.share = base::SharePolicy::kThreshold;
  EXPECT_TRUE(check_sharing(options).ok());
  options.calibration = "off";
  EXPECT_EQ(check_sharing(options).error().message.find("--share: 'threshold'"), 0u);
}

TEST(Emulation, SaysHowManyNodesThereAre) {
  base::Options options;
  const std::vector<const char*> arguments{"--emulate", "1.0,0.5,0.33"};
  ASSERT_TRUE(base::parse_arguments(arguments, options).ok());
  ASSERT_TRUE(settle_emulation(options, false).ok());
  EXPECT_EQ(options.nodes, 3);
  EXPECT_EQ(refusal({"--emulate=1.0,0.5", "-n2", "-t1"}), "");
}

TEST(Emulation, IsHeldAgainstTheOtherOptions) {
  EXPECT_EQ(refusal({"--emulate=1.0,0.5", "-n3"}),
            "--nodes: '3' is not allowed with --emulate 1.0,0.5, which makes 2 nodes");
  EXPECT_EQ(refusal({"--emulate=0.5", "-n2"}),
            "--nodes: '2' is not allowed with --emulate 0.5, which makes 1 node");
  EXPECT_NE(refusal({"--emulate=1.0,0.5", "-t4"}).find("--threads: '4'"), std::string::npos);
  EXPECT_NE(refusal({"--emulate=1.0,0.5", "--no-bind"}).find("--no-bind"), std::string::npos);
  EXPECT_NE(refusal({"--emulate=1.0,0.5"}, true).find("PMIx"), std::string::npos);
  EXPECT_EQ(refusal({"-n3", "-t4", "--no-bind"}, true), "");
}

}  // namespace
}  // namespace amasia::tools
