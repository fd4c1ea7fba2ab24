// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/own_mappings.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "os/os.hpp"

namespace amasia::omp {
namespace {

constinit std::atomic<bool> has_any{false};

struct Mappings {
  os::Mutex mutex;
  MappedRanges ranges AMASIA_GUARDED_BY(mutex);
};

// Never destroyed, as the program's destructors may still unmap.
Mappings& mappings() {
  static Mappings& all = *new Mappings;
  return all;
}

// Who holds the lock must not wait for a page, nor allocate what is the program's.
template <typename Change>
void change(Change change) noexcept {
  os::in_runtime_section([&change] {
    Mappings& all = mappings();
    const os::MutexLock lock(all.mutex);
    change(all.ranges);
    // Relaxed: a region that uses a mapping comes after it in its thread's own order.
    has_any.store(!all.ranges.empty(), std::memory_order_relaxed);
  });
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void MappedRanges::add(std::uintptr_t begin, Bytes size) {
  remove(begin, size);
  if (size > 0) ranges_[begin] = begin + base::round_up(size, base::kPageSize);
}

void MappedRanges::remove(std::uintptr_t begin, Bytes size) {
  const std::uintptr_t end = begin + base::round_up(size, base::kPageSize);
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    const auto [old_begin, old_end] = *at;
    at = ranges_.erase(at);
    if (old_begin < begin) ranges_[old_begin] = begin;
    if (old_end > end) ranges_[end] = old_end;
  }
}

bool MappedRanges::contains(std::uintptr_t address) const {
  const auto after = ranges_.upper_bound(address);
  return after != ranges_.begin() && std::prev(after)->second > address;
}

void note_own_mapping(const void* begin, Bytes size) noexcept {
  change([=](MappedRanges& ranges) { ranges.add(number(begin), size); });
}

void forget_own_mapping(const void* begin, Bytes size) noexcept {
  if (!has_own_mappings()) return;
  change([=](MappedRanges& ranges) { ranges.remove(number(begin), size); });
}

bool has_own_mappings() noexcept { return has_any.load(std::memory_order_relaxed); }

}  // namespace amasia::omp
