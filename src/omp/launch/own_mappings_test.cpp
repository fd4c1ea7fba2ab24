// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/own_mappings.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace amasia::omp {
namespace {

constexpr Bytes kPage = base::kPageSize;

TEST(MappedRanges, AreWhatWasMappedAndNotUnmapped) {
  constexpr std::size_t kPages = 64;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    MappedRanges ranges;
    std::bitset<kPages> mapped;
    for (int step = 0; step < 60; ++step) {
      const std::size_t first = random() % kPages, count = random() % (kPages - first + 1);
      const bool adds = random() % 2 == 0;
      // Sizes need not be whole pages, which are mapped and unmapped all the same.
      const Bytes size = count == 0 ? 0 : count * kPage - random() % kPage;
      if (adds) {
        ranges.add(first * kPage, size);
      } else {
        ranges.remove(first * kPage, size);
      }
      for (std::size_t page = first; page < first + count; ++page) mapped[page] = adds;
      ASSERT_EQ(ranges.empty(), mapped.none());
      for (std::size_t page = 0; page < kPages; ++page) {
        ASSERT_EQ(ranges.contains(page * kPage), mapped[page]) << "seed " << seed;
        ASSERT_EQ(ranges.contains(page * kPage + kPage - 1), mapped[page]);
      }
    }
  }
}

TEST(OwnMappings, AreThereUntilTheLastIsForgotten) {
  alignas(kPage) static std::byte one[2 * kPage], other[kPage];
  EXPECT_FALSE(has_own_mappings());
  note_own_mapping(one, sizeof one);
  note_own_mapping(other, sizeof other);
  forget_own_mapping(one, sizeof one);
  EXPECT_TRUE(has_own_mappings());
  forget_own_mapping(one, sizeof one);  // nothing there any more
  EXPECT_TRUE(has_own_mappings());
  forget_own_mapping(other, sizeof other);
  EXPECT_FALSE(has_own_mappings());
}

}  // namespace
}  // namespace amasia::omp
