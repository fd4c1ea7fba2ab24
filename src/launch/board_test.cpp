// SPDX-License-Identifier: Apache-2.0
#include "launch/board.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace amasia::launch {
namespace {

TEST(JobBoard, WhatANodePublishesIsReadThroughAnotherMapping) {
  auto board = JobBoard::create();
  ASSERT_TRUE(board.ok()) << board.error().message;
  auto node = JobBoard::open(::dup(board.value().descriptor()));
  ASSERT_TRUE(node.ok()) << node.error().message;

  EXPECT_EQ(board.value().describe(NodeId(3)), "starting up");
  node.value().slot(NodeId(3)).enter_region("main.c:12");
  node.value().slot(NodeId(3)).waits_for.set("barrier of node 0");
  EXPECT_EQ(board.value().describe(NodeId(3)),
            "in region main.c:12, waiting for barrier of node 0");
  node.value().slot(NodeId(3)).waits_for.clear();
  node.value().slot(NodeId(3)).leave_region();
  EXPECT_EQ(board.value().describe(NodeId(3)), "outside any region");
  EXPECT_EQ(board.value().slot(NodeId(3)).progress.load(), 2u);
}

TEST(JobBoard, CommonMemoryIsTheSameForAllAndApartFromTheSlots) {
  auto board = JobBoard::create();
  ASSERT_TRUE(board.ok()) << board.error().message;
  auto node = JobBoard::open(::dup(board.value().descriptor()));
  ASSERT_TRUE(node.ok()) << node.error().message;
  const std::span<std::byte> mine = board.value().common(), theirs = node.value().common();
  ASSERT_EQ(mine.size(), JobBoard::kCommonSize);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data()) % base::kPageSize, 0u);
  EXPECT_EQ(mine.front(), std::byte{});
  EXPECT_EQ(mine.back(), std::byte{});
  board.value().slot(NodeId(base::kMaxNodes - 1)).region.set(std::string(BoardText::kSize, 'x'));
  EXPECT_EQ(mine.front(), std::byte{});
  mine.back() = std::byte{7};
  EXPECT_EQ(theirs.back(), std::byte{7});
}

TEST(BoardText, IsCutAtItsSizeAndShortensAgain) {
  auto board = JobBoard::create();
  ASSERT_TRUE(board.ok()) << board.error().message;
  BoardText& text = board.value().slot(NodeId(0)).region;
  text.set(std::string(1000, 'x'));
  EXPECT_EQ(text.read(), std::string(BoardText::kSize, 'x'));
  text.set("12345678");  // ends at a word's end
  EXPECT_EQ(text.read(), "12345678");
  text.set("123");
  EXPECT_EQ(text.read(), "123");
  text.clear();
  EXPECT_EQ(text.read(), "");
}

TEST(BoardText, AReaderBesideWritersSeesOneOfTheirTexts) {
  auto board = JobBoard::create();
  ASSERT_TRUE(board.ok()) << board.error().message;
  BoardText& text = board.value().slot(NodeId(0)).region;
  const std::string a(100, 'a'), b(170, 'b');
  text.set(a);
  std::atomic<bool> stop = false;
  std::thread first([&] {
    while (!stop) text.set(a);
  });
  std::thread second([&] {
    while (!stop) text.set(b);
  });
  // However rarely no writer is at it: what was read whole is one text.
  for (int whole = 0; whole < 1000;) {
    const std::optional<std::string> seen = text.read_whole();
    if (!seen.has_value()) continue;
    ++whole;
    EXPECT_TRUE(*seen == a || *seen == b) << *seen;
  }
  stop = true;
  first.join();
  second.join();
  const std::string last = text.read();
  EXPECT_TRUE(last == a || last == b) << last;
}

}  // namespace
}  // namespace amasia::launch
