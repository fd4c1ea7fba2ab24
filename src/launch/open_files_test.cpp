// SPDX-License-Identifier: Apache-2.0
#include "launch/open_files.hpp"

#include <gtest/gtest.h>

namespace amasia::launch {
namespace {

TEST(OpenFiles, TheLimitAndWhatIsNeededAreNamed) {
  EXPECT_EQ(why_too_few_files(20, 2),
            "the hard limit of open files (ulimit -Hn) is 20; a job of 2 nodes needs 1088 or more");
  EXPECT_EQ(why_too_few_files(20, 1),
            "the hard limit of open files (ulimit -Hn) is 20; a job of 1 node needs 128 or more");
}

TEST(OpenFiles, EnoughIsEnough) {
  EXPECT_NE(why_too_few_files(1087, 2), "");
  EXPECT_EQ(why_too_few_files(1088, 2), "");
  EXPECT_NE(why_too_few_files(127, 1), "");
  EXPECT_EQ(why_too_few_files(128, 1), "");
  EXPECT_EQ(why_too_few_files(UINT64_MAX, 64), "");
}

}  // namespace
}  // namespace amasia::launch
