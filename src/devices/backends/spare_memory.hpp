// SPDX-License-Identifier: Apache-2.0
// What a back end keeps of the memory that tasks gave back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/base.hpp"

namespace amasia::devices {

using base::Bytes;

// Memory of a device, addresses or handles other than 0, that was freed and may be taken again,
// since asking the driver for some costs: CUDA up to a millisecond, and it waits for the device; a
// driver for the host's cores has it mapped and zeroed page by page. Whoever holds it guards it.
class SpareMemory {
 public:
  explicit SpareMemory(Bytes limit) : limit_(limit) {}
  // Memory of that rounded size, or 0: what was put last, which a CPU's caches may have still.
  std::uint64_t take(Bytes size);
  // What is to be given back to the driver, for `size` bytes at `address` to be kept: others, the
  // largest first, or itself.
  std::vector<std::uint64_t> put(std::uint64_t address, Bytes size);
  // All, when the device has no more.
  std::vector<std::uint64_t> take_all();
  Bytes held() const { return held_; }

 private:
  static constexpr std::size_t kSizesMost = 32;  // beyond so many, none is kept that has nothing
  std::map<Bytes, std::vector<std::uint64_t>> spare_;
  Bytes limit_;
  Bytes held_ = 0;
};

// How much of a GPU's memory a program may keep so. The daemon does not know of it, and who runs
// out of memory can only give back its own: so that a dozen programs leave most of it.
constexpr Bytes spare_of_gpu(Bytes memory) { return std::min<Bytes>(memory / 32, base::kGiB); }

}  // namespace amasia::devices
