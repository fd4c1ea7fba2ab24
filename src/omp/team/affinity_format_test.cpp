// SPDX-License-Identifier: Apache-2.0
#include "omp/team/affinity_format.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

constexpr TeamPlace kPlace{13, 64, 7, 2};

TEST(AffinityFormat, FieldsOfTheTeamAreFilledInAsWideAsTheyAsk) {
  EXPECT_EQ(fill_affinity_format("%n of %N", kPlace), "13 of 64");
  EXPECT_EQ(fill_affinity_format("%{thread_num}/%{num_threads}", kPlace), "13/64");
  EXPECT_EQ(fill_affinity_format("%a, %0.3{ancestor_tnum}", kPlace), "7, 007");
  EXPECT_EQ(fill_affinity_format("%L, %.2{nesting_level}", kPlace), "2,  2");
  EXPECT_EQ(fill_affinity_format("[%4n]", kPlace), "[13  ]");
  EXPECT_EQ(fill_affinity_format("[%.4n]", kPlace), "[  13]");
  EXPECT_EQ(fill_affinity_format("[%0.4n]", kPlace), "[0013]");
  EXPECT_EQ(fill_affinity_format("[%0.5{num_threads}]", kPlace), "[00064]");
  EXPECT_EQ(fill_affinity_format("[%1n]", kPlace), "[13]");
}

TEST(AffinityFormat, AllElseIsLeftToTheRuntime) {
  for (const char* format : {"", "plain", "100%%", "%%n", "%H %P %i %A %t %T",
                             "%0.8i", "%{host} %{no such}", "%", "%{thread_num", "%0.", "%12"}) {
    EXPECT_EQ(fill_affinity_format(format, kPlace), format);
  }
  EXPECT_EQ(fill_affinity_format("%%%n%H", kPlace), "%%13%H");
}

TEST(AffinityFormat, FieldsThatAreNotKnownAreLeftToTheRuntime) {
  EXPECT_EQ(fill_affinity_format("%n %N %a", {}), "%n %N %a");
  EXPECT_EQ(fill_affinity_format("%n %N %L %.3a", {.ancestor = 5}), "%n %N %L   5");
}

TEST(AffinityFormat, AWidthBeyondReasonIsCut) {
  EXPECT_EQ(fill_affinity_format("%99999999999999999999n", kPlace).size(), kMaxAffinityFormat);
}

TEST(AffinityFormat, KeepsWhatIsSetUpToTheLimit) {
  AffinityFormat format;
  EXPECT_EQ(format.get(), "");
  format.set("abc");
  EXPECT_EQ(format.get(), "abc");
  format.set(std::string(1000, 'x'));
  EXPECT_EQ(format.get().size(), kMaxAffinityFormat);
}

}  // namespace
}  // namespace amasia::omp
