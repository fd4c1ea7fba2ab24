// SPDX-License-Identifier: Apache-2.0
#include "omp/region/thread_number.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

TEST(ThreadNumber, NothingIsNotSet) {
  EXPECT_FALSE(sets_threads(nullptr, Abi::kGomp));
  EXPECT_FALSE(sets_threads(nullptr, Abi::kKmpc));
}

TEST(ThreadNumber, BothTakeLists) {
  for (const char* value : {"1", "3", " 3", "3 ", "2,3", "2 , 3", "16,4,1"}) {
    EXPECT_TRUE(sets_threads(value, Abi::kGomp)) << value;
    EXPECT_TRUE(sets_threads(value, Abi::kKmpc)) << value;
  }
}

TEST(ThreadNumber, BothIgnoreWhatIsNoNumber) {
  for (const char* value : {"", " ", "rubbish", "-4", "-0", "3x", "0x3", "3;4", ","}) {
    EXPECT_FALSE(sets_threads(value, Abi::kGomp)) << value;
    EXPECT_FALSE(sets_threads(value, Abi::kKmpc)) << value;
  }
}

// As libgomp 12 and libomp 19 were seen to take them in plain runs.
TEST(ThreadNumber, EachHasItsOwnView) {
  for (const char* value : {"0", "1,0", "2,", "99999999999999999999"}) {
    EXPECT_FALSE(sets_threads(value, Abi::kGomp)) << value;
    EXPECT_TRUE(sets_threads(value, Abi::kKmpc)) << value;
  }
  EXPECT_TRUE(sets_threads("+3", Abi::kGomp));
  EXPECT_FALSE(sets_threads("+3", Abi::kKmpc));
}

}  // namespace
}  // namespace amasia::omp
