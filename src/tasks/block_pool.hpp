// SPDX-License-Identifier: Apache-2.0
// Memory of tasks and futures: blocks of a few sizes. A worker keeps some of each at hand, without
// atomics; what it has too many of goes to a store for all, in batches, and comes from there: one
// worker may create what another ends. Blocks are never given back to the system: a future may
// outlive the runtime that it came from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "os/os.hpp"

namespace amasia::tasks {

inline constexpr std::array<std::size_t, 4> kBlockSizes = {64, 128, 256, 512};

// Addresses of blocks of one size, which go from worker to worker together. Not linked through the
// blocks themselves: who takes them would wait for each one's memory to come from the core that had
// it last, one after the other.
struct Batch {
  static constexpr std::uint32_t kBlocks = 128;
  Batch* next = nullptr;  // in the store
  std::array<void*, kBlocks> blocks;
};

// Blocks of one worker. Not for two threads at once.
class BlockCache {
 public:
  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache();

  void* take(std::size_t index) {
    Shelf& shelf = shelves_[index];
    if (shelf.count == 0) [[unlikely]]
      refill(index);
    // One that is taken later comes meanwhile from the core that had it last.
    if (shelf.count <= shelf.cold + kAhead && shelf.cold > 0) [[unlikely]]
      os::prefetch_to_write(shelf.blocks[--shelf.cold]);
    return shelf.blocks[--shelf.count];
  }
  void give(void* block, std::size_t index) noexcept {
    Shelf& shelf = shelves_[index];
    if (shelf.count == shelf.blocks.size()) [[unlikely]]
      make_room(index);
    shelf.blocks[shelf.count++] = block;
  }

  static std::size_t index_of(std::size_t size) {
    return size <= 64 ? 0 : size <= 128 ? 1 : size <= 256 ? 2 : 3;
  }
  static bool fits(std::size_t size) { return size <= kBlockSizes.back(); }

  // For threads that have no cache.
  static void* take_from_store(std::size_t index);
  static void give_to_store(void* block, std::size_t index) noexcept;

 private:
  static constexpr std::uint32_t kAhead = 8;
  // The newest, last in its core's cache, goes first. Room for two batches: who takes and gives in
  // turns does not come to the store each time.
  struct Shelf {
    std::uint32_t count = 0;
    std::uint32_t cold = 0;  // the oldest so many came from the store, and were not yet fetched
    std::array<void*, 2 * Batch::kBlocks> blocks;
  };
  void refill(std::size_t index);
  void make_room(std::size_t index) noexcept;
  std::array<Shelf, kBlockSizes.size()> shelves_;
};

}  // namespace amasia::tasks
