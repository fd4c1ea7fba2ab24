// SPDX-License-Identifier: Apache-2.0
// The managed heap of this node: jemalloc inside the heap part of the node's arena.
//
// All that the allocator itself writes lies in runtime memory: extents, bitmaps and caches. It
// stores nothing in blocks, neither used nor free ones. So allocating and freeing never fault, a
// block that another node wrote last is freed without fetching it, and a page that only holds
// blocks of that node stays there. (docs/decisions/allocator.md has the figures.)
//
// Blocks of other nodes' arenas are not this class's: see foreign_blocks.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"
#include "dsm/address_space.hpp"
#include "dsm/heap/block_bounds.hpp"

namespace amasia::dsm {

// One per process: the allocator's own state is. Constant-initialised and trivially destroyed.
//
//   operation                    who                        when
//   start                        the composition root       once, one thread, before any other call
//   the rest                     any thread of the program  after start; not the service thread
class Heap {
 public:
  constexpr Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  struct Settings {
    // No single block is larger, as an operating system refuses what can never fit.
    Bytes largest_block = ~Bytes{0};
    // A part at the end of the range that belongs to other nodes, and how much is taken in front of
    // it before it is used. Where it is full too, the rest in front of it follows.
    AddressRange spread{};
    Bytes own_share = ~Bytes{0};
    // The end of the spread part, which belongs to all nodes, for blocks larger than what is left
    // of either share. Empty: there is none.
    AddressRange even_spread{};
    Bytes others_share = ~Bytes{0};
  };
  // Allocates from `range` (page-aligned, zero-filled memory that only this node's heap uses). May
  // allocate from the C library.
  EarlyOutcome start(AddressRange range, const Settings& settings) noexcept;
  bool started() const { return range_.end != 0; }

  bool owns(const void* block) const {
    return range_.contains(reinterpret_cast<std::uintptr_t>(block));
  }

  // As malloc, calloc, aligned_alloc (any power of two): nullptr and ENOMEM when the heap is full
  // or the block too large. Zero bytes give a block of its own.
  void* allocate(std::size_t size) noexcept;
  void* allocate_zeroed(std::size_t count, std::size_t size) noexcept;
  void* allocate_aligned(std::size_t alignment, std::size_t size) noexcept;
  // Of blocks that this heap owns.
  void* reallocate(void* block, std::size_t size) noexcept;
  void release(void* block) noexcept;
  // Takes no lock and touches no managed memory: may be called from the service thread too.
  std::size_t usable_size(const void* block) const noexcept;

  // Where its large blocks begin and end.
  const BlockBounds& bounds() const { return bounds_; }

  // Bytes of the range taken so far. They are reused but never given back.
  Bytes bytes_taken() const;

 private:
  static constexpr unsigned kMaxArenas = 16;
  friend struct HeapHooks;

  // A stretch of the range of which the front has been taken.
  struct Part {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    // Where the untouched rest begins. Relaxed: it carries no other data.
    std::atomic<std::uintptr_t> next{0};

    void set(std::uintptr_t first, std::uintptr_t last) noexcept;
    void* take(std::uintptr_t wanted, Bytes size, Bytes alignment) noexcept;
  };

  void* take(std::uintptr_t wanted, Bytes size, Bytes alignment) noexcept;
  void bind_thread() noexcept;
  void* ensure_inside(void* block, std::size_t size, int flags) noexcept;
  void* allocate_explicitly(std::size_t size, int flags) noexcept;

  AddressRange range_;
  BlockBounds bounds_;
  Bytes largest_block_ = 0;
  Part parts_[3];  // in the order in which they are used
  Part even_part_;
  Bytes others_share_ = ~Bytes{0};
  unsigned arena_count_ = 0;
  unsigned arenas_[kMaxArenas] = {};
  // Deals arenas to threads. Relaxed: any distribution is right.
  std::atomic<unsigned> next_arena_{0};
};

}  // namespace amasia::dsm
