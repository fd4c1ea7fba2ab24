// SPDX-License-Identifier: Apache-2.0
#include "dsm/load_store.hpp"

#include <gtest/gtest.h>

namespace amasia::dsm {
namespace {

constexpr std::uint64_t kPlace = 11, kOther = 12;
constexpr std::int32_t kThread = 4, kAnother = 5;

PageIndex page(std::uint64_t number) { return PageIndex{number}; }

// A load that waits for a copy, and a store that waits to own it.
void add_to(LoadStore& spots, PageIndex to) {
  EXPECT_FALSE(spots.on_load(kPlace, kThread, to));
  spots.on_store(kPlace, kThread, to, LoadStore::kSoon);
}

LoadStore known() {
  LoadStore spots;
  for (std::uint32_t i = 0; i < LoadStore::kPairsUntilKnown; ++i) add_to(spots, page(i));
  return spots;
}

// How many loads from this page on are asked for as a writer before one is not.
std::uint32_t trusted(LoadStore& spots, std::uint64_t from) {
  std::uint32_t count = 0;
  while (count < 1000 && spots.on_load(kPlace, kThread, page(from + count % 100))) ++count;
  return count;
}

TEST(LoadStore, AnArrayThatIsAddedToIsAskedForAsAWriter) {
  LoadStore spots = known();
  EXPECT_TRUE(spots.expects_store(kPlace, kThread, page(50)));
  EXPECT_TRUE(spots.on_load(kPlace, kThread, page(50)));
  EXPECT_TRUE(spots.on_load(kPlace, kThread, page(20)));
}

TEST(LoadStore, OtherPlacesPartsAndThreadsAreNot) {
  LoadStore spots = known();
  EXPECT_FALSE(spots.on_load(kOther, kThread, page(5)));
  EXPECT_FALSE(spots.on_load(kPlace, kAnother, page(5)));
  EXPECT_FALSE(spots.on_load(kPlace, kThread, page(LoadStore::kPart)));
  EXPECT_TRUE(spots.on_load(kPlace, kThread, page(5)));
}

TEST(LoadStore, AnArrayThatIsOnlyReadIsNot) {
  LoadStore spots;
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(spots.on_load(kPlace, kThread, page(i)));
}

TEST(LoadStore, ALoadWithoutAStoreStartsTheCountAnew) {
  LoadStore spots;
  add_to(spots, page(1));
  EXPECT_FALSE(spots.on_load(kPlace, kThread, page(2)));
  add_to(spots, page(3));
  EXPECT_FALSE(spots.expects_store(kPlace, kThread, page(4)));
  add_to(spots, page(4));
  EXPECT_TRUE(spots.expects_store(kPlace, kThread, page(5)));
}

TEST(LoadStore, AStoreMuchLaterTellsThatThePageIsToStayReadable) {
  LoadStore spots;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(spots.on_load(kPlace, kThread, page(i)));
    spots.on_store(kPlace, kThread, page(i), LoadStore::kSoon + 1);
  }
}

// Pages that came ahead of a walk wait once, for the store.
TEST(LoadStore, AWalkCountsByThePagesThatItDidNotWaitToRead) {
  LoadStore spots;
  add_to(spots, page(1));
  spots.on_store(kPlace, kThread, page(2), 1 * base::kSecond);
  EXPECT_TRUE(spots.expects_store(kPlace, kThread, page(3)));
}

TEST(LoadStore, StoresToOtherPagesThanTheOneThatWasLoadedSayNothing) {
  LoadStore spots;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(spots.on_load(kPlace, kThread, page(i)));
    spots.on_store(kPlace, kThread, page(i + 200), 0);
  }
}

TEST(LoadStore, WhatIsNotWrittenAnyMoreIsSoonOnlyRead) {
  LoadStore spots = known();
  EXPECT_EQ(trusted(spots, 10), LoadStore::kFirstTrust);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(spots.on_load(kPlace, kThread, page(i)));
}

TEST(LoadStore, WhatIsStillAddedToIsTrustedTwiceAsLongEachTime) {
  LoadStore spots = known();
  for (std::uint32_t trust = LoadStore::kFirstTrust; trust <= LoadStore::kMostTrust; trust *= 2) {
    EXPECT_EQ(trusted(spots, 0), trust);
    spots.on_store(kPlace, kThread, page(trust % 100), 0);
  }
  EXPECT_EQ(trusted(spots, 0), LoadStore::kMostTrust);
}

TEST(LoadStore, NothingIsLearnedWhereNoPlaceIsKnown) {
  LoadStore spots;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(spots.on_load(0, kThread, page(i)));
    spots.on_store(0, kThread, page(i), 0);
  }
  EXPECT_FALSE(spots.expects_store(0, kThread, page(1)));
}

}  // namespace
}  // namespace amasia::dsm
