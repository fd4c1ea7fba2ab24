// SPDX-License-Identifier: Apache-2.0
#include "machine/identity.hpp"

#include <gtest/gtest.h>

namespace amasia::machine {
namespace {

TEST(Identity, ANodeTellsOfItselfWithoutLoss) {
  const NodeIdentity self = identify_node(7);
  EXPECT_EQ(self.cores, 7u);
  EXPECT_FALSE(self.host.empty());
  EXPECT_FALSE(self.cpu.empty());
  const auto again = decode_node(encode(self));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), self);
}

TEST(Identity, MalformedWordsOfANodeAreRefused) {
  for (const char* text :
       {"", "1", "1\nhost", "0\nhost\ncpu", "x\nhost\ncpu", "1 \nhost\ncpu", "1\n\ncpu",
        "1\nhost\n", "1\nhost\ncpu\nmore", "1\nho\x01st\ncpu", "99999999999\nhost\ncpu"}) {
    EXPECT_FALSE(decode_node(text).ok()) << text;
  }
}

TEST(Identity, OnlySettingsThatDecideAboutCostsMatter) {
  const auto found = settings_that_matter({{"AMASIA_TRANSPORT", "tcp"},
                                           {"AMASIA_NODES", "3"},
                                           {"AMASIA_STATS", "-"},
                                           {"AMASIA_LINK", "500"},
                                           {"AMASIA_MEMORY", "1G"},
                                           {"AMASIA_CALIBRATION", "/tmp/x"}},
                                          "tcp,self");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"AMASIA_LINK", "500"}, {"AMASIA_TRANSPORT", "tcp"}, {"UCX_TLS", "tcp,self"}};
  EXPECT_EQ(found, expected);
}

TEST(Identity, TheSentenceNamesWhatTellsItApart) {
  Identity identity{.nodes = {{"a", "cpu", 2}, {"a", "cpu", 2}}, .settings = {}};
  EXPECT_EQ(text_of(identity), "2 nodes on 'a'");
  identity.nodes[1].host = "b";
  identity.settings = {{"AMASIA_LINK", "500"}};
  EXPECT_EQ(text_of(identity), "2 nodes on 2 hosts, AMASIA_LINK=500");
}

}  // namespace
}  // namespace amasia::machine
