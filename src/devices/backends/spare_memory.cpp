// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/spare_memory.hpp"

#include <iterator>

namespace amasia::devices {

std::uint64_t SpareMemory::take(Bytes size) {
  const auto found = spare_.find(size);
  if (found == spare_.end()) return 0;
  const std::uint64_t address = found->second;
  spare_.erase(found);
  held_ -= size;
  return address;
}

std::vector<std::uint64_t> SpareMemory::put(std::uint64_t address, Bytes size) {
  if (size > limit_) return {address};
  std::vector<std::uint64_t> to_free;
  while (held_ + size > limit_) {
    const auto largest = std::prev(spare_.end());
    held_ -= largest->first;
    to_free.push_back(largest->second);
    spare_.erase(largest);
  }
  spare_.emplace(size, address);
  held_ += size;
  return to_free;
}

std::vector<std::uint64_t> SpareMemory::take_all() {
  std::vector<std::uint64_t> all;
  for (const auto& [size, address] : spare_) all.push_back(address);
  spare_.clear();
  held_ = 0;
  return all;
}

}  // namespace amasia::devices
