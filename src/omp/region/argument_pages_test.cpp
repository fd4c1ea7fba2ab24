// SPDX-License-Identifier: Apache-2.0
#include "omp/region/argument_pages.hpp"

#include <gtest/gtest.h>

#include <utility>
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

// A page that two nodes read in each region, if `read`, and the origin writes in between.
struct Program {
  ArgumentPages pages;
  bool read = true;
  std::uint32_t given_back = 2;
  bool asked = false;  // since the last look
  int offers = 0, looks = 0;

  // Whether nodes have to wait for the page.
  bool region() {
    const ArgumentPages::Way way = pages.next(kPage);
    bool sent = false;
    if (way != ArgumentPages::Way::kNone) {
      ++looks;
      const bool had_asked = std::exchange(asked, false);
      const bool offers_now = way == ArgumentPages::Way::kOffer ||
                              (way == ArgumentPages::Way::kIfAsked && had_asked);
      if (way != ArgumentPages::Way::kLook) {
        sent = pages.note(kPage, {offers_now ? 2U : 0U, had_asked});
        EXPECT_EQ(sent, offers_now);
      }
    }
    offers += sent ? 1 : 0;
    for (std::uint32_t i = 0; sent && i < given_back; ++i) pages.note_given_back(kPage);
    if (!read || sent) return false;
    asked = true;
    return true;
  }
};

TEST(ArgumentPages, AreOfferedToWhoReadsThem) {
  Program program;
  EXPECT_TRUE(program.region());
  int waits = 0;
  for (int i = 0; i < 640; ++i) waits += program.region() ? 1 : 0;
  EXPECT_NEAR(waits, 640 / static_cast<int>(ArgumentPages::kRelearn), 1) << "to see who asks";
}

TEST(ArgumentPages, AreLookedAtSeldomWhereNobodyReadsThem) {
  Program program{.read = false};
  for (int i = 0; i < 800; ++i) program.region();
  EXPECT_EQ(program.offers, 0);
  EXPECT_NEAR(program.looks, 100, 5);
}

TEST(ArgumentPages, AreNotOfferedAnyMoreOnceNobodyReadsThem) {
  Program program;
  for (int i = 0; i < 10; ++i) program.region();
  program.read = false;
  for (int i = 0; i < 80; ++i) program.region();
  program.offers = 0;
  for (int i = 0; i < 800; ++i) program.region();
  EXPECT_EQ(program.offers, 0);
  program.read = true;
  int waits = 0;
  for (int i = 0; i < 100; ++i) waits += program.region() ? 1 : 0;
  EXPECT_LE(waits, 12) << "seen when it is looked at";
}

TEST(ArgumentPages, AreLeftOutMoreAndMoreOftenWhereTheyDoNotComeBack) {
  Program program{.given_back = 1};
  for (int i = 0; i < 1000; ++i) program.region();
  EXPECT_LT(program.offers, 20);
  EXPECT_GT(program.offers, 5);
  program.given_back = 2;
  program.offers = 0;
  for (int i = 0; i < 1000; ++i) program.region();
  EXPECT_GT(program.offers, 600) << "those that come back again are forgiven";
}

TEST(ArgumentPages, ManyPagesMakeRoomForEachOther) {
  ArgumentPages pages;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t page = kPage + i * base::kPageSize;
    EXPECT_EQ(pages.next(page), ArgumentPages::Way::kIfAsked);
    EXPECT_TRUE(pages.note(page, {1, true}));
  }
}

}  // namespace
}  // namespace amasia::omp
