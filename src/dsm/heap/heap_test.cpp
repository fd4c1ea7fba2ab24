// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap/heap.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "dsm/heap/heap_for_tests.hpp"

#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace amasia::dsm {
namespace {

Heap& heap() { return heap_for_tests(); }

TEST(Heap, BlocksLieInTheRangeAlignedAndApart) {
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (std::size_t size : {0ul, 1ul, 8ul, 24ul, 100ul, 4096ul, 70'000ul, 9'000'000ul}) {
    for (int i = 0; i < 20; ++i) {
      auto* block = static_cast<char*>(heap().allocate(size));
      ASSERT_TRUE(heap().owns(block));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (size >= 16 ? 16 : 8), 0u);
      EXPECT_GE(heap().usable_size(block), size);
      std::memset(block, static_cast<int>(blocks.size()), size);
      blocks.emplace_back(block, size);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t at = 0; at < blocks[i].second; at += 4096) {
      ASSERT_EQ(blocks[i].first[at], static_cast<char>(i));
    }
    heap().release(blocks[i].first);
  }
}

TEST(Heap, ZeroedBlocksAreZeroAlsoWhenUsedBefore) {
  for (std::size_t size : {40ul, 5000ul, 300'000ul}) {
    for (int i = 0; i < 30; ++i) {
      auto* block = static_cast<unsigned char*>(heap().allocate_zeroed(1, size));
      for (std::size_t at = 0; at < size; ++at) ASSERT_EQ(block[at], 0);
      std::memset(block, 0xa5, size);
      heap().release(block);
    }
  }
}

TEST(Heap, AlignmentsUpToMegabytes) {
  for (std::size_t alignment = 1; alignment <= 4 * base::kMiB; alignment *= 2) {
    void* const block = heap().allocate_aligned(alignment, alignment / 2 + 1);
    ASSERT_TRUE(heap().owns(block));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    heap().release(block);
  }
}

TEST(Heap, ReallocatingKeepsTheContent) {
  auto* block = static_cast<unsigned char*>(heap().allocate(10));
  std::size_t size = 10;
  std::memset(block, 7, size);
  for (std::size_t larger : {100ul, 5000ul, 100'000ul, 20'000'000ul, 50ul}) {
    block = static_cast<unsigned char*>(heap().reallocate(block, larger));
    ASSERT_TRUE(heap().owns(block));
    for (std::size_t at = 0; at < std::min(size, larger); ++at) ASSERT_EQ(block[at], 7);
    std::memset(block, 7, larger);
    size = larger;
  }
  heap().release(block);
}

TEST(Heap, HugeBlocksAndExhaustion) {
  void* const three = heap().allocate(3 * base::kGiB);
  ASSERT_TRUE(heap().owns(three));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(three) % base::kPageSize, 0u);
  static_cast<char*>(three)[3 * base::kGiB - 1] = 1;
  errno = 0;
  EXPECT_EQ(heap().allocate(kTestLargestBlock + 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* const eleven = heap().allocate(11 * base::kGiB);
  ASSERT_TRUE(heap().owns(eleven));
  void* const ten = heap().allocate_zeroed(10, base::kGiB);
  ASSERT_TRUE(heap().owns(ten));
  errno = 0;
  EXPECT_EQ(heap().allocate(10 * base::kGiB), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(heap().allocate_aligned(64, 10 * base::kGiB), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(heap().allocate_zeroed(1ul << 40, 1ul << 40), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* const small = heap().allocate(100);
  EXPECT_TRUE(heap().owns(small));
  heap().release(small);
  heap().release(eleven);
  void* const again = heap().allocate(10 * base::kGiB);
  EXPECT_TRUE(heap().owns(again));
  for (void* block : {again, ten, three}) heap().release(block);
}

// The reason for this allocator: a freed block may be on another node.
TEST(Heap, FreeingAndAllocatingTouchNoBlock) {
  std::vector<void*> blocks;
  for (int i = 0; i < 20'000; ++i) blocks.push_back(heap().allocate(16 + i % 3000));
  const AddressRange range = space_for_tests().heap(NodeId{1});
  auto* const begin = reinterpret_cast<void*>(range.begin);
  ASSERT_EQ(mprotect(begin, range.size(), PROT_NONE), 0);
  for (void* block : blocks) heap().release(block);
  for (void*& block : blocks) block = heap().allocate(64);
  ASSERT_EQ(mprotect(begin, range.size(), PROT_READ | PROT_WRITE), 0);
  for (void* block : blocks) heap().release(block);
}

struct LateUser {
  ~LateUser() {
    block = heap().allocate(1000);
    EXPECT_TRUE(heap().owns(block));
    heap().release(block);
  }
  void* block = nullptr;
};

TEST(Heap, ThreadsComeAndGoAndFreeEachOthersBlocks) {
  std::vector<void*> blocks(4000);
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        static thread_local LateUser late;
        late.block = nullptr;
        std::mt19937 random(t);
        for (std::size_t i = t; i < blocks.size(); i += 4) {
          if (blocks[i] != nullptr) heap().release(blocks[i]);
          blocks[i] = heap().allocate(random() % 2000);
          ASSERT_TRUE(heap().owns(blocks[i]));
        }
      });
    }
    for (auto& thread : threads) thread.join();
    std::rotate(blocks.begin(), blocks.begin() + 1, blocks.end());
  }
  for (void* block : blocks) heap().release(block);
}

}  // namespace
}  // namespace amasia::dsm
