// SPDX-License-Identifier: Apache-2.0
#include "tasks/block_pool.hpp"

#include <cstdlib>
#include <new>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::tasks {
namespace {

// The store for all: of the process, as the heap is.
struct Store {
  os::Mutex mutex;
  std::array<Block*, kBlockSizes.size()> batches AMASIA_GUARDED_BY(mutex){};
  std::array<Block*, kBlockSizes.size()> singles AMASIA_GUARDED_BY(mutex){};
};
Store& store() {
  static Store* const all = new Store;  // never destroyed: futures may be freed after main
  return *all;
}

// A batch of new blocks.
Block* make_batch(std::size_t size, std::uint32_t count) {
  void* const memory = std::aligned_alloc(64, size * count);
  if (memory == nullptr) throw std::bad_alloc();
  Block* first = nullptr;
  for (std::uint32_t index = count; index-- > 0;) {
    auto* const block = reinterpret_cast<Block*>(static_cast<char*>(memory) + index * size);
    block->next = first;
    first = block;
  }
  return first;
}

}  // namespace

void BlockCache::refill(std::size_t index) {
  Block* batch = nullptr;
  {
    Store& all = store();
    const os::MutexLock lock(all.mutex);
    batch = all.batches[index];
    if (batch != nullptr) all.batches[index] = batch->next_batch;
  }
  if (batch == nullptr) batch = make_batch(kBlockSizes[index], kBatch);
  shelves_[index] = {batch, kBatch};
}

void BlockCache::hand_in(std::size_t index) {
  Shelf& shelf = shelves_[index];
  Block* const batch = shelf.first;
  Block* last = batch;
  for (std::uint32_t n = 1; n < kBatch; ++n) last = last->next;
  shelf.first = last->next;
  shelf.count -= kBatch;
  last->next = nullptr;
  Store& all = store();
  const os::MutexLock lock(all.mutex);
  batch->next_batch = all.batches[index];
  all.batches[index] = batch;
}

BlockCache::~BlockCache() {
  for (std::size_t index = 0; index < shelves_.size(); ++index) {
    while (shelves_[index].count >= kBatch) hand_in(index);
    while (Block* const block = shelves_[index].first) {
      shelves_[index].first = block->next;
      give_to_store(block, index);
    }
  }
}

void* BlockCache::take_from_store(std::size_t index) {
  Store& all = store();
  const os::MutexLock lock(all.mutex);
  if (all.singles[index] == nullptr) {
    if (Block* const batch = all.batches[index]) {
      all.batches[index] = batch->next_batch;
      all.singles[index] = batch;
    } else {
      all.singles[index] = make_batch(kBlockSizes[index], kBatch);
    }
  }
  Block* const block = all.singles[index];
  all.singles[index] = block->next;
  return block;
}

void BlockCache::give_to_store(void* memory, std::size_t index) {
  Store& all = store();
  const os::MutexLock lock(all.mutex);
  auto* const block = static_cast<Block*>(memory);
  block->next = all.singles[index];
  all.singles[index] = block;
}

}  // namespace amasia::tasks
