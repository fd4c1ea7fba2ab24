// SPDX-License-Identifier: Apache-2.0
#include "omp/region/argument_pages.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/base.hpp"

namespace amasia::omp {
namespace {

constexpr std::uint64_t kPage = 0x7000'0000;

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

TEST(ArgumentPages, AreThoseAboveTheForkingThreadsFrame) {
  const std::uint64_t low = kPage + 100;
  const std::vector<void*> words = {
      at(kPage + 50),                          // below: not a variable of the caller
      at(low),                                 //
      at(kPage + 2 * base::kPageSize),         //
      at(kPage + 2 * base::kPageSize + 4095),  //
      at(kPage + 31 * base::kPageSize),        //
      at(kPage + 32 * base::kPageSize),        // too far
      nullptr, at(~std::uint64_t{0})};
  const PageWindow window = ArgumentPages::window_of(words, at(low));
  EXPECT_EQ(window.first, kPage);
  EXPECT_EQ(window.mask, 1U | 1U << 2 | 1U << 31);
  EXPECT_EQ(ArgumentPages::window_of({}, at(low)).mask, 0U);
}

// One region: `needed` nodes have no copy of the page. Whether it is to be given back.
bool region(ArgumentPages& pages, std::uint32_t needed, std::uint32_t given_back) {
  if (!pages.may_offer(kPage)) return false;
  const bool returns = pages.note_offer(kPage, needed);
  for (std::uint32_t i = 0; returns && i < given_back; ++i) pages.note_given_back(kPage);
  return returns;
}

TEST(ArgumentPages, StayWhereNobodyWritesThem) {
  ArgumentPages pages;
  EXPECT_FALSE(region(pages, 2, 0));
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(region(pages, 0, 0));
}

TEST(ArgumentPages, AreLookedAtSeldomWhereNobodyNeedsThem) {
  ArgumentPages pages;
  int looks = 0;
  for (int i = 0; i < 800; ++i) {
    if (!pages.may_offer(kPage)) continue;
    ++looks;
    pages.note_offer(kPage, 0);
  }
  EXPECT_NEAR(looks, 100, 5);
}

TEST(ArgumentPages, ReturnWhereTheyAreWrittenInBetween) {
  ArgumentPages pages;
  EXPECT_FALSE(region(pages, 2, 0));
  for (std::uint32_t i = 1; i < ArgumentPages::kRelearn; ++i) EXPECT_TRUE(region(pages, 2, 2)) << i;
  EXPECT_TRUE(region(pages, 2, 2));
  EXPECT_FALSE(region(pages, 2, 2)) << "tried as lasting";
  EXPECT_TRUE(region(pages, 2, 2)) << "in vain";
}

TEST(ArgumentPages, AreLeftOutMoreAndMoreOftenWhereTheyDoNotComeBack) {
  ArgumentPages pages;
  EXPECT_FALSE(region(pages, 2, 0));
  int offers = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!pages.may_offer(kPage)) continue;
    ++offers;
    if (pages.note_offer(kPage, 2)) pages.note_given_back(kPage);  // by one of the two
  }
  EXPECT_LT(offers, 40);
  EXPECT_GT(offers, 5);
}

TEST(ArgumentPages, ThatComeBackAgainAreForgiven) {
  ArgumentPages pages;
  region(pages, 1, 0);
  for (int i = 0; i < 100; ++i) region(pages, 1, 0);
  int returned = 0;
  for (int i = 0; i < 200; ++i) returned += region(pages, 1, 1) ? 1 : 0;
  EXPECT_GT(returned, 120);
}

TEST(ArgumentPages, ManyPagesMakeRoomForEachOther) {
  ArgumentPages pages;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(pages.may_offer(kPage + i * base::kPageSize));
    EXPECT_FALSE(pages.note_offer(kPage + i * base::kPageSize, 1));
  }
}

}  // namespace
}  // namespace amasia::omp
