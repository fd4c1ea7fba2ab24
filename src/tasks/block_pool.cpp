// SPDX-License-Identifier: Apache-2.0
#include "tasks/block_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::tasks {
namespace {

struct Single {
  Single* next;
};

// The store for all: of the process, as the heap is.
//
//   batches, full and empty = blocks that were ever made / Batch::kBlocks
//
// So who has a batch's worth of blocks, which are in none, always finds an empty one.
struct Store {
  os::Mutex mutex;
  std::array<Batch*, kBlockSizes.size()> full AMASIA_GUARDED_BY(mutex){};
  Batch* empty AMASIA_GUARDED_BY(mutex) = nullptr;
  // Of threads without a cache; linked through the blocks.
  std::array<Single*, kBlockSizes.size()> singles AMASIA_GUARDED_BY(mutex){};
};
Store& store() {
  static Store* const all = new Store;  // never destroyed: futures may be freed after main
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
  const os::MutexLock lock(all.mutex);
  push(all.empty, batch.release());
}

// A batch of them.
void take_blocks(std::size_t index, void** blocks) {
  Store& all = store();
  {
    const os::MutexLock lock(all.mutex);
    if (Batch* const batch = pop(all.full[index])) {
      std::copy(batch->blocks.begin(), batch->blocks.end(), blocks);
      return push(all.empty, batch);
    }
  }
  make_blocks(index, blocks);
}
void give_blocks(std::size_t index, void* const* blocks) noexcept {
  Store& all = store();
  const os::MutexLock lock(all.mutex);
  Batch* const batch = pop(all.empty);
  AMASIA_CHECK(batch != nullptr, "there are as many batches as blocks fill");
  std::copy_n(blocks, Batch::kBlocks, batch->blocks.begin());
  push(all.full[index], batch);
}

}  // namespace

void BlockCache::refill(std::size_t index) {
  Shelf& shelf = shelves_[index];
  take_blocks(index, shelf.blocks.data());
  shelf.count = Batch::kBlocks;
  shelf.cold = Batch::kBlocks;
  while (shelf.cold > shelf.count - kAhead) os::prefetch_to_write(shelf.blocks[--shelf.cold]);
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
  for (;;) {
    {
      const os::MutexLock lock(all.mutex);
      if (Single* const single = all.singles[index]) {
        all.singles[index] = single->next;
        return single;
      }
    }
    std::array<void*, Batch::kBlocks> blocks;
    take_blocks(index, blocks.data());
    for (void* const block : blocks) give_to_store(block, index);
  }
}

void BlockCache::give_to_store(void* block, std::size_t index) noexcept {
  Store& all = store();
  const os::MutexLock lock(all.mutex);
  auto* const single = static_cast<Single*>(block);
  single->next = all.singles[index];
  all.singles[index] = single;
}

}  // namespace amasia::tasks
