// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap/block_bounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "dsm/heap/heap_for_tests.hpp"

namespace amasia::dsm {
namespace {

constexpr std::uintptr_t kBegin = 0x7c00'0000'0000;
constexpr Bytes kPage = base::kPageSize;

// The range is never touched: only its addresses count.
class BlockBoundsTest : public ::testing::Test {
 protected:
  explicit BlockBoundsTest() {
    EXPECT_EQ(bounds_.start({kBegin, kBegin + kPages * kPage}), 0);
  }
  void note(std::uint64_t page, Bytes size) {
    bounds_.note(reinterpret_cast<const void*>(kBegin + page * kPage), size);
  }
  // In pages.
  std::pair<std::uint64_t, std::uint64_t> around(std::uint64_t page) const {
    const AddressRange range = bounds_.around(kBegin + page * kPage + 17);
    return {(range.begin - kBegin) / kPage, (range.end - kBegin) / kPage};
  }
  using Run = std::pair<std::uint64_t, std::uint64_t>;

  static constexpr std::uint64_t kPages = 3 * BlockBounds::kFarthest;
  BlockBounds bounds_;
};

TEST_F(BlockBoundsTest, ABlockReachesFromItsFirstPageToItsLast) {
  note(100, 30 * kPage);
  note(130, 20 * kPage - 5);
  EXPECT_EQ(around(100), (Run{100, 130}));
  EXPECT_EQ(around(129), (Run{100, 130}));
  EXPECT_EQ(around(130), (Run{130, 150}));
  EXPECT_EQ(around(149), (Run{130, 150}));
  EXPECT_EQ(around(150).first, 150u) << "what follows is not of it";
  EXPECT_EQ(around(99), (Run{0, 100}));
}

TEST_F(BlockBoundsTest, SmallBlocksAreNotNoted) {
  note(100, BlockBounds::kLeast - 1);
  EXPECT_EQ(around(100).first, 0u);
}

TEST_F(BlockBoundsTest, ABlockHidesWhatWasThereBefore) {
  for (std::uint64_t page = 1000; page < 1400; page += 20) note(page, 20 * kPage);
  note(1020, 200 * kPage);
  EXPECT_EQ(around(1100), (Run{1020, 1220}));
  EXPECT_EQ(around(1225), (Run{1220, 1240}));
}

TEST_F(BlockBoundsTest, BoundsThatAreFarAwayAreNotLookedFor) {
  const std::uint64_t middle = kPages / 2;
  EXPECT_EQ(around(middle),
            (Run{middle - BlockBounds::kFarthest, middle + BlockBounds::kFarthest}));
  EXPECT_EQ(around(0), (Run{0, BlockBounds::kFarthest}));
  EXPECT_EQ(around(kPages - 1).second, kPages);
}

TEST_F(BlockBoundsTest, NothingIsKnownOfOtherMemory) {
  EXPECT_EQ(bounds_.around(kBegin - 1).size(), 0u);
  EXPECT_EQ(bounds_.around(kBegin + kPages * kPage).size(), 0u);
  EXPECT_EQ(BlockBounds().around(kBegin).size(), 0u);
}

// Against a plain list of bounds.
TEST_F(BlockBoundsTest, AnyBlocksInAnyOrder) {
  std::mt19937_64 random(11);
  std::vector<bool> is_bound(5001, false);
  is_bound[0] = true;
  note(0, kPage * 16);
  is_bound[16] = true;
  note(5000, kPage * 16);
  is_bound[5000] = true;
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t first = 16 + random() % 4900;
    const std::uint64_t pages = std::min<std::uint64_t>(16 + random() % 300, 5000 - first);
    if (pages >= 16) {
      note(first, pages * kPage);
      for (std::uint64_t i = first; i < first + pages; ++i) is_bound[i] = false;
      is_bound[first] = is_bound[first + pages] = true;
    }
    const std::uint64_t page = random() % 5000;
    std::uint64_t begin = page, end = page + 1;
    while (!is_bound[begin]) --begin;
    while (!is_bound[end]) ++end;
    ASSERT_EQ(around(page), (Run{begin, end})) << "round " << round;
  }
}

TEST(HeapBounds, TheHeapNotesItsLargeBlocks) {
  Heap& heap = heap_for_tests();
  const auto around = [&heap](const void* block) {
    return heap.bounds().around(reinterpret_cast<std::uintptr_t>(block));
  };
  constexpr Bytes kSize = 300 * base::kKiB;
  std::vector<void*> blocks = {heap.allocate(kSize), heap.allocate_zeroed(3, kSize / 3),
                               heap.allocate_aligned(64, kSize)};
  blocks.push_back(heap.reallocate(heap.allocate(100), kSize));
  for (void* const block : blocks) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    EXPECT_EQ(around(block).begin, address);
    EXPECT_EQ(around(block).end, address + kSize);
    heap.release(block);
  }
}

}  // namespace
}  // namespace amasia::dsm
