// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host's, which copies to and from a GPU go through. To get some from the
// driver, and give it back, costs a millisecond (H200), whatever its size: small pieces are cut
// from slabs, and what tasks gave back is kept.
#pragma once

#include <span>
#include <vector>

#include "devices/backends/cuda/cuda_driver.hpp"
#include "devices/backends/spare_memory.hpp"
#include "os/os.hpp"

namespace amasia::devices::cuda {

struct Pinned {
  char* bytes = nullptr;
  Bytes size = 0;
};

// Any thread, in the context of the device.
class PinnedMemory {
 public:
  // Slabs, and besides pieces that are none of a slab's, take no more than `most` each.
  PinnedMemory(const Driver& cuda, Bytes most) : cuda_(cuda), most_(most), large_(most) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // nullptr bytes: there is no more. The size may be larger than asked for.
  Pinned take(Bytes size);
  void give(std::span<const Pinned> all);

 private:
  // 32 pieces of the largest that are cut, and not too much where few small ones are wanted.
  static constexpr Bytes kSlab = 4 * base::kMiB, kLargestCut = 128 * base::kKiB;
  Pinned cut(Bytes rounded);
  char* from_driver(Bytes size);

  const Driver& cuda_;
  const Bytes most_;
  os::Mutex mutex_;
  SpareMemory pieces_ AMASIA_GUARDED_BY(mutex_){~Bytes{0}};  // of slabs
  std::vector<char*> slabs_ AMASIA_GUARDED_BY(mutex_);
  SpareMemory large_ AMASIA_GUARDED_BY(mutex_);
};

}  // namespace amasia::devices::cuda
