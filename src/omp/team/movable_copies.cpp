// SPDX-License-Identifier: Apache-2.0
#include "omp/team/movable_copies.hpp"

#include <algorithm>
#include <cstring>

namespace amasia::omp {
namespace {

std::uintptr_t end_of(std::uintptr_t copy, std::span<void* const> list, std::uintptr_t stack_top) {
  std::uintptr_t end = std::min(stack_top, copy + kSearchedForAddresses);
  // The list itself is on the stack, too, often right above the copies, and full of addresses.
  if (const auto own = reinterpret_cast<std::uintptr_t>(list.data()); own > copy) {
    end = std::min(end, own);
  }
  for (void* const entry : list) {
    if (const auto other = reinterpret_cast<std::uintptr_t>(entry); other > copy) {
      end = std::min(end, other);
    }
  }
  return end;
}

}  // namespace

bool are_movable(std::span<void* const> list, std::uintptr_t stack_low, std::uintptr_t stack_top,
                 const std::function<bool(std::uintptr_t)>& is_heap) {
  for (void* const entry : list) {
    const auto copy = reinterpret_cast<std::uintptr_t>(entry);
    if (copy < stack_low || copy >= stack_top) continue;
    const std::uintptr_t end = end_of(copy, list, stack_top);
    // Addresses are aligned, whatever else the object holds.
    for (std::uintptr_t at = base::round_up(copy, sizeof(void*)); at + sizeof(void*) <= end;
         at += sizeof(void*)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, reinterpret_cast<const void*>(at), sizeof word);
      if ((word >= copy && word < end) || is_heap(word)) return false;
    }
  }
  return true;
}

}  // namespace amasia::omp
