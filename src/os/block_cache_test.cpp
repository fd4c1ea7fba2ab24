// SPDX-License-Identifier: Apache-2.0
#include "os/block_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace amasia::os {
namespace {

// Nobody else has a block that was taken: each is filled with a mark, which is there at its end.
class Holder {
 public:
  Holder(BlockCache& cache, unsigned char mark) : cache_(cache), mark_(mark) {}
  void take(std::size_t index) {
    void* const block = cache_.take(index);
    std::memset(block, mark_, kBlockSizes[index]);
    held_.push_back({block, index});
  }
  void give(std::size_t which) {
    const auto [block, index] = held_[which];
    const auto* const bytes = static_cast<const unsigned char*>(block);
    for (std::size_t n = 0; n < kBlockSizes[index]; ++n) ASSERT_EQ(bytes[n], mark_);
    held_[which] = held_.back();
    held_.pop_back();
    cache_.give(block, index);
  }
  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    void* block;
    std::size_t index;
  };
  BlockCache& cache_;
  const unsigned char mark_;
  std::vector<Held> held_;
};

TEST(BlockCache, GivesEachBlockToOne) {
  for (int seed = 0; seed < 10; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    BlockCache one, other;
    Holder first(one, 1), second(other, 2);
    for (int turn = 0; turn < 100; ++turn) {
      Holder& holder = random() % 2 == 0 ? first : second;
      const bool takes = random() % 2 == 0;
      // Often more than a cache holds.
      for (unsigned times = random() % 600; times > 0; --times) {
        if (takes) holder.take(random() % kBlockSizes.size());
        if (!takes && holder.held() > 0) holder.give(random() % holder.held());
      }
    }
    while (first.held() > 0) first.give(first.held() - 1);
    while (second.held() > 0) second.give(0);
  }
}

// One creates what the other ends: the store gives the first its own blocks back.
TEST(BlockCache, BlocksComeBackFromAnotherThread) {
  constexpr int kTimes = 20;
  constexpr std::size_t kEach = 1000;
  std::set<void*> seen;
  std::array<std::atomic<void*>, kEach> passed{};
  std::atomic<int> round{0};
  std::thread other([&] {
    BlockCache cache;
    for (int n = 1; n <= kTimes; ++n) {
      while (round.load() != n) std::this_thread::yield();
      for (auto& block : passed) cache.give(block.load(), 0);
      round.store(-n);
    }
  });
  {
    BlockCache cache;
    for (int n = 1; n <= kTimes; ++n) {
      for (auto& block : passed) {
        block.store(cache.take(0));
        seen.insert(block.load());
      }
      round.store(n);
      while (round.load() != -n) std::this_thread::yield();
    }
    other.join();
  }
  EXPECT_LT(seen.size(), 3 * kEach);
}

TEST(BlockCache, ThreadsWithoutACacheTakeAndGive) {
  std::set<void*> blocks;
  for (int n = 0; n < 500; ++n) blocks.insert(BlockCache::take_from_store(1));
  EXPECT_EQ(blocks.size(), 500u);
  for (void* const block : blocks) BlockCache::give_to_store(block, 1);
  EXPECT_EQ(blocks.count(BlockCache::take_from_store(1)), 1u);
}

// Whoever comes and goes takes what others left: else each thread would leave some behind.
TEST(BlockCache, ThreadsThatEndLeaveTheirBlocksToOthers) {
  std::set<void*> seen;
  for (int n = 0; n < 100; ++n) {
    std::thread([&] {
      std::vector<void*> held;
      for (int block = 0; block < 50; ++block) held.push_back(allocate_block(600));
      seen.insert(held.begin(), held.end());
      for (void* const block : held) release_block(block, 600);
    }).join();
  }
  EXPECT_LE(seen.size(), 2 * Batch::kBlocks);
}

// A thread's own objects may be destroyed after its cache was.
TEST(BlockCache, AThreadMayFreeAfterItsCacheHasEnded) {
  struct Late {
    std::shared_ptr<std::array<char, 100>> last;
    ~Late() {
      last.reset();
      const std::vector<int, BlockAllocator<int>> another(20, 7);
      EXPECT_EQ(another.back(), 7);
    }
  };
  std::thread([] {
    thread_local Late late;  // made before the cache, so it ends after it
    late.last = std::allocate_shared<std::array<char, 100>>(BlockAllocator<char>());
  }).join();
}

TEST(BlockCache, ContainersGrowBeyondTheLargestBlock) {
  std::vector<std::uint64_t, BlockAllocator<std::uint64_t>> numbers;
  for (std::uint64_t n = 0; n < 1000; ++n) numbers.push_back(n);
  for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_EQ(numbers[n], n);
  EXPECT_THROW(BlockAllocator<std::uint64_t>().allocate(SIZE_MAX / 2), std::bad_array_new_length);
}

}  // namespace
}  // namespace amasia::os
