// SPDX-License-Identifier: Apache-2.0
// What the program maps by itself (mmap): memory of this process, which other nodes cannot reach,
// and of which nobody can tell what a region does with it. While there is some, regions stay on
// node 0 (SingleReason::kOwnMappings).
#pragma once

#include <cstdint>
#include <map>

#include "base/base.hpp"

namespace amasia::omp {

// Address ranges, as mmap and munmap add and remove them: whatever overlaps. Not for several
// threads at once.
class MappedRanges {
 public:
  void add(std::uintptr_t begin, Bytes size);
  void remove(std::uintptr_t begin, Bytes size);
  bool empty() const { return ranges_.empty(); }
  bool contains(std::uintptr_t address) const;

 private:
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  // begin, end; none overlap
};

// Those of this process, by the program's calls (mapping_calls.hpp). Any thread; not in signal
// handlers.
void note_own_mapping(const void* begin, Bytes size) noexcept;
void forget_own_mapping(const void* begin, Bytes size) noexcept;
// Any context.
bool has_own_mappings() noexcept;

}  // namespace amasia::omp
