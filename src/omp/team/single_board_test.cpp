// SPDX-License-Identifier: Apache-2.0
#include "omp/team/single_board.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace amasia::omp {
namespace {

using Verdict = SingleBoard::Verdict;

TEST(SingleBoard, EachNumberHasOneClaimer) {
  SingleBoard board;
  board.reset(1);
  constexpr std::uint64_t kNumbers = 5000;  // many times around the slots
  std::atomic<std::uint64_t> claims{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t number = 0; number < kNumbers; ++number) {
        if (board.claim(number)) claims.fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(claims.load(), kNumbers);
}

TEST(SingleBoard, AThreadFarBehindFindsItsNumberTaken) {
  SingleBoard board;
  board.reset(1);
  for (std::uint64_t number = 0; number <= 256; ++number) EXPECT_TRUE(board.claim(number));
  EXPECT_FALSE(board.claim(0));
  board.reset(1);
  EXPECT_TRUE(board.claim(0));
}

TEST(SingleBoard, ForgetsARegionOnceItIsReset) {
  SingleBoard board;
  board.reset(2);
  for (int region = 0; region < 3; ++region) {
    EXPECT_TRUE(board.claim(0)) << "region " << region;
    board.tell(1);
    EXPECT_TRUE(board.answer(1, 2, true));
    board.reset(2);
    EXPECT_EQ(board.verdict(0, 1), SingleBoard::Verdict::kUnknown);
    EXPECT_EQ(board.verdict(1, 2), SingleBoard::Verdict::kUnknown);
    board.reset(2);  // after a region without a single construct
  }
  board.tell(0);
  board.reset(3);
  EXPECT_EQ(board.verdict(2, 0), SingleBoard::Verdict::kUnknown);
}

TEST(SingleBoard, KnowsWhatItWasToldOrAnswered) {
  SingleBoard board;
  board.reset(2);
  EXPECT_EQ(board.verdict(0, 3), Verdict::kUnknown);
  board.tell(3);
  EXPECT_EQ(board.verdict(0, 3), Verdict::kTaken);
  EXPECT_EQ(board.verdict(0, 2), Verdict::kUnknown);
  EXPECT_TRUE(board.answer(1, 4, true));
  EXPECT_EQ(board.verdict(1, 4), Verdict::kMine);
  EXPECT_EQ(board.verdict(0, 4), Verdict::kUnknown);
  EXPECT_TRUE(board.answer(1, 5, false));
  EXPECT_EQ(board.verdict(1, 5), Verdict::kTaken);
  EXPECT_EQ(board.verdict(1, 4), Verdict::kUnknown);
  EXPECT_FALSE(board.answer(2, 5, false));
  // News of the same slot's next number leaves no verdict on this one: the answer will come.
  board.tell(3 + 256);
  board.tell(3);
  EXPECT_EQ(board.verdict(0, 3), Verdict::kUnknown);
}

}  // namespace
}  // namespace amasia::omp
