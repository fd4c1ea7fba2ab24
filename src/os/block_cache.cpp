// SPDX-License-Identifier: Apache-2.0
#include "os/block_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/base.hpp"

namespace amasia::os {
namespace {

// The store for all: of the process, as the heap is.
//
//   batches, full and empty = blocks that were ever made / Batch::kBlocks
//
// So who has a batch's worth of blocks, which are in none, always finds an empty one.
struct Store {
  Mutex mutex;
  std::array<Batch*, kBlockSizes.size()> full AMASIA_GUARDED_BY(mutex){};
  Batch* empty AMASIA_GUARDED_BY(mutex) = nullptr;
  // Given and taken one by one, less than a batch: by threads that end, or have no cache.
  struct Singles {
    std::uint32_t count = 0;
    std::array<void*, Batch::kBlocks> blocks;
  };
  std::array<Singles, kBlockSizes.size()> singles AMASIA_GUARDED_BY(mutex){};
};
Store& store() {
  static Store* const all = new Store;  // never destroyed: the last blocks may be freed after main
  return *all;
}

void push(Batch*& first, Batch* batch) {
  batch->next = first;
  first = batch;
}
Batch* pop(Batch*& first) {
  Batch* const batch = first;
  if (batch != nullptr) first = batch->next;
  return batch;
}

// New ones, of which the last is the first in memory: it is taken first.
void make_blocks(std::size_t index, void** blocks) {
  const std::size_t size = kBlockSizes[index];
  auto batch = std::make_unique<Batch>();
  auto* memory = static_cast<char*>(std::aligned_alloc(64, size * Batch::kBlocks));
  if (memory == nullptr) throw std::bad_alloc();
  for (std::uint32_t n = Batch::kBlocks; n-- > 0; memory += size) blocks[n] = memory;
  Store& all = store();
  const MutexLock lock(all.mutex);
  push(all.empty, batch.release());
}

// A batch of them.
void take_blocks(std::size_t index, void** blocks) {
  Store& all = store();
  {
    const MutexLock lock(all.mutex);
    if (Batch* const batch = pop(all.full[index])) {
      std::copy(batch->blocks.begin(), batch->blocks.end(), blocks);
      return push(all.empty, batch);
    }
  }
  make_blocks(index, blocks);
}
void put_full(Store& all, std::size_t index, void* const* blocks) AMASIA_REQUIRES(all.mutex) {
  Batch* const batch = pop(all.empty);
  AMASIA_CHECK(batch != nullptr, "there are as many batches as blocks fill");
  std::copy_n(blocks, Batch::kBlocks, batch->blocks.begin());
  push(all.full[index], batch);
}
void give_blocks(std::size_t index, void* const* blocks) noexcept {
  Store& all = store();
  const MutexLock lock(all.mutex);
  put_full(all, index, blocks);
}

}  // namespace

void BlockCache::refill(std::size_t index) {
  Shelf& shelf = shelves_[index];
  take_blocks(index, shelf.blocks.data());
  shelf.count = Batch::kBlocks;
  shelf.cold = Batch::kBlocks;
  while (shelf.cold > shelf.count - kAhead) prefetch_to_write(shelf.blocks[--shelf.cold]);
}

// Gives the older ones away: the newer ones are in this core's cache.
void BlockCache::make_room(std::size_t index) noexcept {
  Shelf& shelf = shelves_[index];
  give_blocks(index, shelf.blocks.data());
  shelf.count -= Batch::kBlocks;
  shelf.cold = 0;
  std::copy_n(shelf.blocks.begin() + Batch::kBlocks, shelf.count, shelf.blocks.begin());
}

BlockCache::~BlockCache() {
  for (std::size_t index = 0; index < shelves_.size(); ++index) {
    Shelf& shelf = shelves_[index];
    while (shelf.count >= Batch::kBlocks) make_room(index);
    while (shelf.count > 0) give_to_store(shelf.blocks[--shelf.count], index);
  }
}

void* BlockCache::take_from_store(std::size_t index) {
  Store& all = store();
  {
    const MutexLock lock(all.mutex);
    Store::Singles& singles = all.singles[index];
    if (singles.count > 0) return singles.blocks[--singles.count];
  }
  std::array<void*, Batch::kBlocks> blocks;
  take_blocks(index, blocks.data());
  for (std::uint32_t n = 1; n < Batch::kBlocks; ++n) give_to_store(blocks[n], index);
  return blocks[0];
}

void BlockCache::give_to_store(void* block, std::size_t index) noexcept {
  Store& all = store();
  const MutexLock lock(all.mutex);
  Store::Singles& singles = all.singles[index];
  singles.blocks[singles.count++] = block;
  if (singles.count < Batch::kBlocks) return;
  put_full(all, index, singles.blocks.data());
  singles.count = 0;
}

namespace {

// On the heap: few threads of a process that has this library use it.
struct OwnCache {
  BlockCache* cache = nullptr;
  ~OwnCache();
};
thread_local constinit bool has_ended = false;  // outlives the cache: others' destructors free too
thread_local constinit OwnCache own;

OwnCache::~OwnCache() {
  has_ended = true;
  delete cache;
}

BlockCache* own_cache() {
  if (own.cache == nullptr && !has_ended) own.cache = new (std::nothrow) BlockCache;
  return has_ended ? nullptr : own.cache;
}

}  // namespace

void* allocate_block(std::size_t size) {
  if (!BlockCache::fits(size)) return ::operator new(size);
  const std::size_t index = BlockCache::index_of(size);
  BlockCache* const cache = own_cache();
  return cache != nullptr ? cache->take(index) : BlockCache::take_from_store(index);
}

void release_block(void* block, std::size_t size) noexcept {
  if (!BlockCache::fits(size)) return ::operator delete(block);
  const std::size_t index = BlockCache::index_of(size);
  BlockCache* const cache = own_cache();
  cache != nullptr ? cache->give(block, index) : BlockCache::give_to_store(block, index);
}

}  // namespace amasia::os
