// SPDX-License-Identifier: Apache-2.0
#include "base/openmp_environment.hpp"

#include <gtest/gtest.h>

#include "base/options.hpp"

namespace amasia::base {
namespace {

std::optional<RuntimeSchedule> parsed(std::string_view value) {
  const auto schedule = parse_omp_schedule("OMP_SCHEDULE", value);
  EXPECT_TRUE(schedule.ok()) << value;
  return schedule.ok() ? schedule.value() : std::nullopt;
}

TEST(OmpSchedule, TakesOurKindsAsOpenMpSpellsItsOwn) {
  EXPECT_EQ(parsed("hetprobe"), (RuntimeSchedule{false, false, 0}));
  EXPECT_EQ(parsed(" HetProbe-I , 12 "), (RuntimeSchedule{true, false, 12}));
  EXPECT_EQ(parsed("monotonic:hetprobe,1"), (RuntimeSchedule{false, true, 1}));
  EXPECT_EQ(parsed("nonmonotonic : hetprobe-i"), (RuntimeSchedule{true, false, 0}));
}

TEST(OmpSchedule, LeavesOtherKindsToTheRuntime) {
  for (const char* const value : {"static", "dynamic,4", "monotonic:guided", "auto", "", "nonsense",
                                  "odd:hetprobe"}) {
    EXPECT_EQ(parsed(value), std::nullopt) << value;
  }
}

TEST(OmpSchedule, ABadValueIsOneSentenceWithNameValueAndRange) {
  const auto bad = parse_omp_schedule("OMP_SCHEDULE", "hetprobe,x");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message,
            "OMP_SCHEDULE: 'hetprobe,x' is not allowed; beside OpenMP's own kinds it takes "
            "hetprobe or hetprobe-i, which a chunk from 1 to 2147483647 may follow (hetprobe,8)");
  for (const char* const value : {"hetprobe2", "hetprobe,0", "hetprobe,", "hetprobe,-1",
                                  "hetprobe-i,99999999999999999999", "hetprobe,1,2"}) {
    EXPECT_FALSE(parse_omp_schedule("OMP_SCHEDULE", value).ok()) << value;
  }
}

TEST(OmpSchedule, IsReadFromTheEnvironmentUnderBothNames) {
  for (const char* const entry :
       {"OMP_SCHEDULE=hetprobe-i,3", "AMASIA_OMP_SCHEDULE=hetprobe-i,3"}) {
    const char* const environment[] = {entry, nullptr};
    Options options;
    ASSERT_TRUE(parse_environment(environment, options).ok());
    EXPECT_EQ(options.runtime_schedule, (RuntimeSchedule{true, false, 3}));
    EXPECT_TRUE(unknown_variables(environment).empty());
  }
  const char* const bad[] = {"OMP_SCHEDULE=hetprobe,x", nullptr};
  Options options;
  EXPECT_FALSE(parse_environment(bad, options).ok());
}

TEST(OmpHetPtg, IsTheReprobeOfWhoSetsNoOther) {
  const char* const environment[] = {"OMP_HET_PTG=25", nullptr};
  Options options;
  ASSERT_TRUE(parse_environment(environment, options).ok());
  EXPECT_EQ(options.reprobe_percent, 25);
  const char* const both[] = {"OMP_HET_PTG=25", "AMASIA_REPROBE=30", nullptr};
  Options other;
  ASSERT_TRUE(parse_environment(both, other).ok());
  EXPECT_EQ(other.reprobe_percent, 30);
  const char* const bad[] = {"OMP_HET_PTG=101", nullptr};
  Options unchanged;
  const Status refused = parse_environment(bad, unchanged);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "OMP_HET_PTG: '101' is not allowed; it takes a whole number of percent from 1 to 100");
}

}  // namespace
}  // namespace amasia::base
