// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap/foreign_blocks.hpp"

#include <cstring>
#include <span>

namespace amasia::dsm {

ForeignBlocks::ForeignBlocks(const AddressSpace& space, Heap& heap, fabric::Fabric& fabric)
    : space_(space), heap_(heap), fabric_(fabric) {
  fabric.set_handler(kHeapFirst, kHeapLast, this);
}

NodeId ForeignBlocks::owner_of(const void* block) const {
  const auto page = space_.page_of(block);
  AMASIA_CHECK(page.has_value(), "a block of another node lies in its arena");
  return space_.arena_of(*page);
}

void ForeignBlocks::release(void* block) noexcept {
  os::in_runtime_section([&, block] {
    const NodeId owner = owner_of(block);
    os::MutexLock lock(batch_mutex_);
    Batch& batch = batches_[owner.value];
    batch.blocks[batch.count++] = reinterpret_cast<std::uint64_t>(block);
    has_put_by_.store(true, std::memory_order_relaxed);
    if (batch.count == kBatch) send_locked(owner, batch);
  });
}

void ForeignBlocks::flush() noexcept {
  // Mostly there are none, and a section costs four system calls.
  if (!has_put_by_.load(std::memory_order_relaxed)) return;
  os::in_runtime_section([this] {
    os::MutexLock lock(batch_mutex_);
    has_put_by_.store(false, std::memory_order_relaxed);
    for (std::uint16_t node = 0; node < space_.node_count(); ++node) {
      if (batches_[node].count > 0) send_locked(NodeId{node}, batches_[node]);
    }
  });
}

void ForeignBlocks::send_locked(NodeId to, Batch& batch) {
  fabric_.send(to, kFreeBlocks, std::as_bytes(std::span(batch.blocks.data(), batch.count)));
  batch.count = 0;
}

std::size_t ForeignBlocks::usable_size(const void* block) noexcept {
  std::size_t size = 0;
  os::in_runtime_section([&, this, block] {
    std::uint64_t answer = 0;
    {
      os::MutexLock lock(query_mutex_);
      const std::uint32_t number = ++query_number_;
      fabric_.send(owner_of(block), kSizeRequest,
                   fabric::bytes_of(SizeQuery{reinterpret_cast<std::uint64_t>(block), number, 0}));
      for (;;) {
        const std::uint32_t answered = answered_.load(std::memory_order_acquire);
        if (answered == number) break;
        os::futex_wait(answered_, answered, base::kSecond);
      }
      answer = answered_size_;
    }
    size = answer;
  });
  return size;
}

void ForeignBlocks::collect() noexcept {
  std::vector<std::uint64_t>* blocks = nullptr;
  os::in_runtime_section([&] {
    auto taken = new std::vector<std::uint64_t>;
    {
      os::MutexLock lock(handed_mutex_);
      taken->swap(handed_back_);
      any_.store(false, std::memory_order_relaxed);
    }
    blocks = taken;
  });
  for (const std::uint64_t block : *blocks) heap_.release(reinterpret_cast<void*>(block));
  os::in_runtime_section([blocks] { delete blocks; });
}

void ForeignBlocks::on_message(const fabric::Incoming& message) {
  const auto& body = message.body;
  if (message.type == kFreeBlocks) {
    const std::span blocks(reinterpret_cast<const std::uint64_t*>(body.data()), body.size() / 8);
    os::MutexLock lock(handed_mutex_);
    for (const std::uint64_t block : blocks) {
      // Never trusted: an address that this heap did not give out is left alone.
      if (heap_.owns(reinterpret_cast<void*>(block))) handed_back_.push_back(block);
    }
    any_.store(true, std::memory_order_relaxed);
  } else if (message.type == kSizeRequest && body.size() == sizeof(SizeQuery)) {
    SizeQuery query;
    std::memcpy(&query, body.data(), sizeof query);
    const auto* block = reinterpret_cast<const void*>(query.block);
    SizeReply reply{heap_.owns(block) ? heap_.usable_size(block) : 0, query.number, 0};
    fabric_.send(message.from, kSizeReply, fabric::bytes_of(reply));
  } else if (message.type == kSizeReply && body.size() == sizeof(SizeReply)) {
    SizeReply reply;
    std::memcpy(&reply, body.data(), sizeof reply);
    answered_size_ = reply.size;
    answered_.store(reply.number, std::memory_order_release);
    os::futex_wake(answered_, 1);
  }
}

}  // namespace amasia::dsm
