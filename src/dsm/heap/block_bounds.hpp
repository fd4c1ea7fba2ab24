// SPDX-License-Identifier: Apache-2.0
// Where the large blocks of this node's heap begin and end, as far as pages tell: a walk through
// one of them ends there, and what lies behind is another array, of which other nodes may be at
// work. A bit for each page of the heap. Hints only: where blocks were freed bounds stay until a
// block covers them, and who looks while one is noted may see half of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/base.hpp"
#include "dsm/address_space.hpp"

namespace amasia::dsm {

// Constant-initialised and trivially destroyed, as the heap that it belongs to.
class BlockBounds {
 public:
  static constexpr Bytes kLeast = 64 * base::kKiB;  // of a block that is noted
  // Bounds further away than this are not looked for.
  static constexpr PageCount kFarthest = PageCount{1} << 18;

  constexpr BlockBounds() = default;
  BlockBounds(const BlockBounds&) = delete;
  BlockBounds& operator=(const BlockBounds&) = delete;

  // Of the whole pages of `range`. Returns 0 or errno; allocates nothing. Once, before the rest.
  int start(AddressRange range) noexcept;

  // A block was given out that begins on a page of its own. Any thread, no lock.
  void note(const void* block, Bytes size) noexcept {
    if (size >= kLeast) note_large(reinterpret_cast<std::uintptr_t>(block), size);
  }
  // From the last bound before the address, or at it, to the next one: whole pages, which hold it.
  // Empty where it is not in the range. Any thread, no lock; touches no managed memory; some
  // microseconds at most.
  AddressRange around(std::uintptr_t address) const noexcept;

 private:
  void note_large(std::uintptr_t block, Bytes size) noexcept;
  void set(std::uint64_t page) noexcept;
  void clear(std::uint64_t begin, std::uint64_t end) noexcept;

  AddressRange range_;
  std::atomic<std::uint64_t>* words_ = nullptr;  // relaxed: hints
};

}  // namespace amasia::dsm
