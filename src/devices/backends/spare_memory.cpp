// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/spare_memory.hpp"

#include <iterator>

namespace amasia::devices {

std::uint64_t SpareMemory::take(Bytes size) {
  const auto found = spare_.find(size);
  if (found == spare_.end() || found->second.empty()) return 0;
  const std::uint64_t address = found->second.back();
  found->second.pop_back();
  held_ -= size;
  if (found->second.empty() && spare_.size() > kSizesMost) spare_.erase(found);
  return address;
}

std::vector<std::uint64_t> SpareMemory::put(std::uint64_t address, Bytes size) {
  if (size > limit_) return {address};
  std::vector<std::uint64_t> to_free;
  while (held_ + size > limit_) {
    const auto largest = std::prev(spare_.end());
    if (largest->second.empty()) {
      spare_.erase(largest);
      continue;
    }
    held_ -= largest->first;
    to_free.push_back(largest->second.back());
    largest->second.pop_back();
  }
  spare_[size].push_back(address);
  held_ += size;
  return to_free;
}

std::vector<std::uint64_t> SpareMemory::take_all() {
  std::vector<std::uint64_t> all;
  for (const auto& [size, addresses] : spare_) {
    all.insert(all.end(), addresses.begin(), addresses.end());
  }
  spare_.clear();
  held_ = 0;
  return all;
}

}  // namespace amasia::devices
