// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap/block_bounds.hpp"

#include <algorithm>
#include <bit>

#include "os/os.hpp"

namespace amasia::dsm {
namespace {

constexpr std::uint64_t kBits = 64;

// The bits of a word from `begin` on, and those before `end`.
std::uint64_t bits_from(std::uint64_t begin) { return ~std::uint64_t{0} << begin; }
std::uint64_t bits_before(std::uint64_t end) { return ~bits_from(end); }

}  // namespace

int BlockBounds::start(AddressRange range) noexcept {
  AMASIA_CHECK(words_ == nullptr, "bounds are started twice");
  // A word more than there are pages for: the last page's end is a bound, too.
  const std::uint64_t words = range.size() / base::kPageSize / kBits + 1;
  std::uintptr_t address = 0;
  const int error = os::map_zeroes(words * sizeof *words_, &address);
  if (error != 0) return error;
  range_ = range;
  words_ = reinterpret_cast<std::atomic<std::uint64_t>*>(address);
  return 0;
}

void BlockBounds::set(std::uint64_t page) noexcept {
  words_[page / kBits].fetch_or(std::uint64_t{1} << page % kBits, std::memory_order_relaxed);
}

void BlockBounds::clear(std::uint64_t begin, std::uint64_t end) noexcept {
  for (std::uint64_t word = begin / kBits; word * kBits < end; ++word) {
    std::uint64_t kept = 0;
    if (word == begin / kBits) kept |= bits_before(begin % kBits);
    if (word == end / kBits) kept |= bits_from(end % kBits);
    // Most have none, and then the line stays as it is.
    if ((words_[word].load(std::memory_order_relaxed) & ~kept) == 0) continue;
    words_[word].fetch_and(kept, std::memory_order_relaxed);
  }
}

void BlockBounds::note_large(std::uintptr_t block, Bytes size) noexcept {
  if (words_ == nullptr || !range_.contains(block) || size > range_.end - block) return;
  const std::uint64_t first = (block - range_.begin) / base::kPageSize;
  const std::uint64_t end =
      (block + size - range_.begin + base::kPageSize - 1) / base::kPageSize;
  set(first);
  clear(first + 1, end);
  set(end);
}

AddressRange BlockBounds::around(std::uintptr_t address) const noexcept {
  if (words_ == nullptr || !range_.contains(address)) return {};
  const std::uint64_t page = (address - range_.begin) / base::kPageSize;
  const std::uint64_t pages = range_.size() / base::kPageSize;
  const std::uint64_t lowest = page - std::min(page, kFarthest);
  const std::uint64_t highest = page + std::min(pages - page, kFarthest);
  const auto bits = [this](std::uint64_t word) {
    return words_[word].load(std::memory_order_relaxed);
  };
  std::uint64_t begin = lowest, end = highest;
  std::uint64_t mask = bits_before(page % kBits) | std::uint64_t{1} << page % kBits;
  for (std::uint64_t word = page / kBits;; --word, mask = ~std::uint64_t{0}) {
    if (const std::uint64_t set = bits(word) & mask; set != 0) {
      begin = std::max(lowest, word * kBits + kBits - 1 - std::uint64_t(std::countl_zero(set)));
      break;
    }
    if (word * kBits <= lowest) break;
  }
  mask = bits_from((page + 1) % kBits);
  for (std::uint64_t word = (page + 1) / kBits; word * kBits < highest;
       ++word, mask = ~std::uint64_t{0}) {
    if (const std::uint64_t set = bits(word) & mask; set != 0) {
      end = std::min(highest, word * kBits + std::uint64_t(std::countr_zero(set)));
      break;
    }
  }
  return {range_.begin + begin * base::kPageSize, range_.begin + end * base::kPageSize};
}

}  // namespace amasia::dsm
