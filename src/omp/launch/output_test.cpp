// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/output.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

constexpr NodeId kOne{1}, kTwo{2};

TEST(LineAssembler, WritesWholeLinesOnly) {
  LineAssembler lines;
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, "half"), "");
  EXPECT_EQ(lines.add(kTwo, Stream::kStandard, "a line\n"), "a line\n");
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, " and half\nrest"), "half and half\n");
  EXPECT_EQ(lines.take_rest(kOne, Stream::kStandard), "rest");
  EXPECT_EQ(lines.take_rest(kOne, Stream::kStandard), "");
}

TEST(LineAssembler, KeepsStreamsApart) {
  LineAssembler lines;
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, "out"), "");
  EXPECT_EQ(lines.add(kOne, Stream::kError, "error\n"), "error\n");
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, "\n"), "out\n");
}

TEST(LineAssembler, CutsLinesWithoutEnd) {
  LineAssembler lines;
  const std::string much(LineAssembler::kLongestLine + 1, 'x');
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, much), much);
  EXPECT_EQ(lines.take_rest(kOne, Stream::kStandard), "");
}

}  // namespace
}  // namespace amasia::omp
