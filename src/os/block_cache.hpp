// SPDX-License-Identifier: Apache-2.0
// Memory of small things that one thread makes and another one ends, many a second: blocks of a few
// sizes. A thread keeps some of each at hand, without atomics; what it has too many of goes to a
// store for all, in batches, and comes from there. With malloc such threads wait for the locks of
// each other's heaps. Blocks are never given back to the system: who frees the last one may do so
// after main().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>
#include <vector>

#include "os/mutex.hpp"
#include "os/thread.hpp"

namespace amasia::os {

inline constexpr std::array<std::size_t, 5> kBlockSizes = {64, 128, 256, 512, 640};

// Addresses of blocks of one size, which go from worker to worker together. Not linked through the
// blocks themselves: who takes them would wait for each one's memory to come from the core that had
// it last, one after the other.
struct Batch {
  static constexpr std::uint32_t kBlocks = 128;
  Batch* next = nullptr;  // in the store
  std::array<void*, kBlocks> blocks;
};

// Blocks of one thread. Not for two at once.
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
      prefetch_to_write(shelf.blocks[--shelf.cold]);
    return shelf.blocks[--shelf.count];
  }
  void give(void* block, std::size_t index) noexcept {
    Shelf& shelf = shelves_[index];
    if (shelf.count == shelf.blocks.size()) [[unlikely]]
      make_room(index);
    shelf.blocks[shelf.count++] = block;
  }

  static std::size_t index_of(std::size_t size) {
    return size <= 64 ? 0 : size <= 128 ? 1 : size <= 256 ? 2 : size <= 512 ? 3 : 4;
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

// From the calling thread's own cache, which it has from its first call to its end, then from the
// store; from the heap where a block is too small for `size`. Any thread. Throws std::bad_alloc.
void* allocate_block(std::size_t size);
void release_block(void* block, std::size_t size) noexcept;  // of the same size

// For containers and std::allocate_shared.
template <typename T>
class BlockAllocator {
 public:
  using value_type = T;
  BlockAllocator() = default;
  template <typename Other>
  BlockAllocator(const BlockAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_block(count * sizeof(T)));
  }
  void deallocate(T* first, std::size_t count) noexcept { release_block(first, count * sizeof(T)); }
  bool operator==(const BlockAllocator&) const { return true; }
};

template <typename T>
using BlockVector = std::vector<T, BlockAllocator<T>>;

template <typename Key, typename Value>
using BlockMap = std::unordered_map<Key, Value, std::hash<Key>, std::equal_to<Key>,
                                    BlockAllocator<std::pair<const Key, Value>>>;

// Base of a final class whose objects are made and ended one by one, by `new`.
struct InBlocks {
  static void* operator new(std::size_t size) { return allocate_block(size); }
  static void operator delete(void* block, std::size_t size) noexcept {
    release_block(block, size);
  }
};

}  // namespace amasia::os
