// SPDX-License-Identifier: Apache-2.0
#include "omp/team/affinity_display.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

using base::NodeId;

TeamLook team(std::uint32_t here, std::uint32_t elsewhere = 0, std::uint32_t level = 1) {
  TeamLook look;
  look.level = level;
  look.threads.emplace_back(NodeId{0}, here);
  if (elsewhere > 0) look.threads.emplace_back(NodeId{1}, elsewhere);
  return look;
}

TEST(ShownTeam, IsNewsOnceAndAfterAChange) {
  for (const bool libomp : {true, false}) {
    ShownTeam shown;
    EXPECT_TRUE(shown.is_news(team(4), libomp));
    EXPECT_FALSE(shown.is_news(team(4), libomp));
    EXPECT_TRUE(shown.is_news(team(3), libomp));
    EXPECT_TRUE(shown.is_news(team(4), libomp));
    EXPECT_FALSE(shown.is_news(team(4), libomp));
  }
}

TEST(ShownTeam, WhereTheThreadsAreIsPartOfTheNews) {
  for (const bool libomp : {true, false}) {
    ShownTeam shown;
    EXPECT_TRUE(shown.is_news(team(2, 2), libomp));
    EXPECT_TRUE(shown.is_news(team(3, 1), libomp));
    EXPECT_TRUE(shown.is_news(team(4), libomp));
    TeamLook bound = team(4);
    bound.proc_bind = 3;
    EXPECT_TRUE(shown.is_news(bound, libomp));
    TeamLook under_another = bound;
    under_another.ancestor = 1;
    EXPECT_TRUE(shown.is_news(under_another, libomp));
    EXPECT_FALSE(shown.is_news(under_another, libomp));
  }
}

TEST(ShownTeam, OfLibompAnotherLevelIsAChange) {
  ShownTeam shown;
  EXPECT_TRUE(shown.is_news(team(2, 0, 1), true));
  EXPECT_TRUE(shown.is_news(team(2, 0, 2), true));
  EXPECT_FALSE(shown.is_news(team(2, 0, 2), true));
  EXPECT_TRUE(shown.is_news(team(2, 0, 1), true));
}

TEST(ShownTeam, OfLibgompFurtherLevelsAreShownAlwaysAndChangeNothing) {
  ShownTeam shown;
  EXPECT_TRUE(shown.is_news(team(2, 0, 1), false));
  EXPECT_TRUE(shown.is_news(team(2, 0, 2), false));
  EXPECT_TRUE(shown.is_news(team(2, 0, 2), false));
  EXPECT_FALSE(shown.is_news(team(2, 0, 1), false));
}

TEST(ShownTeam, TheVariableIsReadAsTheRuntimeReadsIt) {
  for (const char* value : {"true", "TRUE", " True "}) {
    EXPECT_TRUE(turns_on_display(value, true)) << value;
    EXPECT_TRUE(turns_on_display(value, false)) << value;
  }
  for (const char* value : {"1", "yes", "on", ".TRUE.", ".t.", "T", "enabled"}) {
    EXPECT_TRUE(turns_on_display(value, true)) << value;
    EXPECT_FALSE(turns_on_display(value, false)) << value;
  }
  for (const char* value : {"", "false", "0", "no", "truer", "1 1"}) {
    EXPECT_FALSE(turns_on_display(value, true)) << value;
    EXPECT_FALSE(turns_on_display(value, false)) << value;
  }
}

}  // namespace
}  // namespace amasia::omp
