// SPDX-License-Identifier: Apache-2.0
// Without a GPU: a driver that only knows memory of the host's.
#include "devices/backends/cuda/cuda_pinned.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>

namespace amasia::devices::cuda {
namespace {

// What it has given, and not got back.
std::map<void*, std::size_t> given;
int calls = 0;
std::size_t most_given = SIZE_MAX;
std::mutex given_mutex;

Driver driver() {
  given.clear();
  calls = 0;
  most_given = SIZE_MAX;
  Driver made;
  made.MemHostAlloc = [](void** out, std::size_t size, unsigned) -> CUresult {
    const std::lock_guard lock(given_mutex);
    ++calls;
    if (given.size() >= most_given) return kOutOfMemory;
    *out = std::malloc(size);
    given[*out] = size;
    return kSuccess;
  };
  made.MemFreeHost = [](void* block) -> CUresult {
    const std::lock_guard lock(given_mutex);
    EXPECT_EQ(given.erase(block), 1U);
    std::free(block);
    return kSuccess;
  };
  return made;
}

TEST(PinnedMemory, SmallPiecesAreCutFromOneSlab) {
  const Driver cuda = driver();
  {
    PinnedMemory memory(cuda, 64 * base::kMiB);
    std::vector<Pinned> all;
    for (int i = 0; i < 200; ++i) all.push_back(memory.take(16'000));
    EXPECT_EQ(calls, 1);
    std::vector<char*> at;
    for (const Pinned& one : all) {
      EXPECT_GE(one.size, 16'000U);
      std::memset(one.bytes, 1, one.size);
      at.push_back(one.bytes);
    }
    std::sort(at.begin(), at.end());
    for (std::size_t i = 1; i < at.size(); ++i) EXPECT_GE(at[i] - at[i - 1], 16'000);
    memory.give(all);
    for (int i = 0; i < 200; ++i) memory.take(16'000);
    EXPECT_EQ(calls, 1) << "what was given back is used again";
  }
  EXPECT_TRUE(given.empty());
}

TEST(PinnedMemory, LargeOnesAreTheDriversOwnAndSomeAreKept) {
  const Driver cuda = driver();
  {
    PinnedMemory memory(cuda, 10 * base::kMiB);
    const Pinned all[] = {memory.take(4 * base::kMiB), memory.take(4 * base::kMiB),
                          memory.take(4 * base::kMiB)};
    EXPECT_EQ(given.size(), 3U);
    memory.give(all);
    EXPECT_EQ(given.size(), 2U) << "no more than the limit is kept";
    const Pinned again = memory.take(4 * base::kMiB);
    EXPECT_EQ(calls, 3);
    memory.give({&again, 1});
  }
  EXPECT_TRUE(given.empty());
}

TEST(PinnedMemory, SaysWhenThereIsNoMore) {
  const Driver cuda = driver();
  PinnedMemory memory(cuda, 4 * base::kMiB);
  EXPECT_NE(memory.take(1000).bytes, nullptr);
  EXPECT_EQ(memory.take(5000).bytes, nullptr) << "another slab would be above the limit";
  most_given = 1;
  EXPECT_EQ(memory.take(base::kMiB).bytes, nullptr) << "the driver has no more";
  EXPECT_NE(memory.take(1000).bytes, nullptr);
}

TEST(PinnedMemory, ServesManyThreads) {
  const Driver cuda = driver();
  {
    PinnedMemory memory(cuda, 64 * base::kMiB);
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&memory, seed] {
        std::mt19937 random(seed);
        std::vector<Pinned> mine;
        for (int i = 0; i < 2000; ++i) {
          const Pinned one = memory.take(1 + random() % 300'000);
          ASSERT_NE(one.bytes, nullptr);
          std::memset(one.bytes, static_cast<int>(seed), 8);
          mine.push_back(one);
          if (mine.size() == 20) {
            for (const Pinned& held : mine) EXPECT_EQ(held.bytes[7], static_cast<char>(seed));
            memory.give(mine);
            mine.clear();
          }
        }
        memory.give(mine);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(given.empty());
}

}  // namespace
}  // namespace amasia::devices::cuda
