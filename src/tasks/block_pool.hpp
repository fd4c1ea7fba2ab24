// SPDX-License-Identifier: Apache-2.0
// Memory of tasks and futures: blocks of a few sizes. A worker keeps some of each at hand, without
// atomics; what it has too many of goes to a store for all, in batches, and comes from there: one
// worker may create what another ends. Blocks are never given back to the system: a future may
// outlive the runtime that it came from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace amasia::tasks {

inline constexpr std::array<std::size_t, 4> kBlockSizes = {64, 128, 256, 512};

struct Block {
  Block* next;        // in its batch
  Block* next_batch;  // of the first block of a batch in the store
};

// Blocks of one size of one worker. Not for two threads at once.
class BlockCache {
 public:
  void* take(std::size_t index) {
    Shelf& shelf = shelves_[index];
    if (shelf.first == nullptr) [[unlikely]]
      refill(index);
    Block* const block = shelf.first;
    shelf.first = block->next;
    --shelf.count;
    return block;
  }
  void give(void* memory, std::size_t index) {
    Shelf& shelf = shelves_[index];
    Block* const block = static_cast<Block*>(memory);
    block->next = shelf.first;
    shelf.first = block;
    if (++shelf.count >= 2 * kBatch) [[unlikely]]
      hand_in(index);
  }
  ~BlockCache();

  static std::size_t index_of(std::size_t size) {
    return size <= 64 ? 0 : size <= 128 ? 1 : size <= 256 ? 2 : 3;
  }
  static bool fits(std::size_t size) { return size <= kBlockSizes.back(); }

  // For threads that have no cache.
  static void* take_from_store(std::size_t index);
  static void give_to_store(void* memory, std::size_t index);

 private:
  static constexpr std::uint32_t kBatch = 128;
  struct Shelf {
    Block* first = nullptr;
    std::uint32_t count = 0;
  };
  void refill(std::size_t index);
  void hand_in(std::size_t index);
  std::array<Shelf, kBlockSizes.size()> shelves_;
};

}  // namespace amasia::tasks
