// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace amasia::base {
namespace {

TEST(Result, HoldsAValue) {
  Result<int> result = 7;
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), 7);
}

TEST(Result, ErrnoErrorEndsWithTheSystemsText) {
  const Result<int> result = errno_error(ENOENT, "cannot open 'x'");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "cannot open 'x': No such file or directory");
  EXPECT_EQ(result.error().code, ENOENT);
}

TEST(ResultDeathTest, TakingTheValueOfAnErrorIsABug) {
  const Result<int> result = Error{"no", 0};
  EXPECT_DEATH(static_cast<void>(result.value()), "check failed");
}

}  // namespace
}  // namespace amasia::base
