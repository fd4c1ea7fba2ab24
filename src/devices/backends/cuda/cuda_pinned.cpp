// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/cuda/cuda_pinned.hpp"

#include "devices/backends/cuda/cuda_launch.hpp"

namespace amasia::devices::cuda {
namespace {

std::uint64_t number_of(char* bytes) { return reinterpret_cast<std::uint64_t>(bytes); }
char* bytes_of(std::uint64_t number) { return reinterpret_cast<char*>(number); }

}  // namespace

PinnedMemory::~PinnedMemory() {
  const os::MutexLock lock(mutex_);
  for (char* const slab : slabs_) cuda_.MemFreeHost(slab);
  for (const std::uint64_t one : large_.take_all()) cuda_.MemFreeHost(bytes_of(one));
}

char* PinnedMemory::from_driver(Bytes size) {
  void* bytes = nullptr;
  return cuda_.MemHostAlloc(&bytes, size, 0) == kSuccess ? static_cast<char*>(bytes) : nullptr;
}

Pinned PinnedMemory::take(Bytes size) {
  const Bytes rounded = rounded_size(size);
  {
    const os::MutexLock lock(mutex_);
    SpareMemory& spare = rounded <= kLargestCut ? pieces_ : large_;
    if (const std::uint64_t kept = spare.take(rounded)) return {bytes_of(kept), rounded};
  }
  return rounded <= kLargestCut ? cut(rounded) : Pinned{from_driver(rounded), rounded};
}

// A slab for pieces of that size, of which there is none: the first one is the caller's.
Pinned PinnedMemory::cut(Bytes rounded) {
  {
    const os::MutexLock lock(mutex_);
    if ((slabs_.size() + 1) * kSlab > most_) return {};
  }
  char* const slab = from_driver(kSlab);
  if (slab == nullptr) return {};
  const os::MutexLock lock(mutex_);
  slabs_.push_back(slab);
  for (Bytes at = rounded; at + rounded <= kSlab; at += rounded) {
    pieces_.put(number_of(slab + at), rounded);
  }
  return {slab, rounded};
}

void PinnedMemory::give(std::span<const Pinned> all) {
  std::vector<std::uint64_t> to_free;
  {
    const os::MutexLock lock(mutex_);
    for (const Pinned& one : all) {
      if (one.size <= kLargestCut) {
        pieces_.put(number_of(one.bytes), one.size);
        continue;
      }
      const auto more = large_.put(number_of(one.bytes), one.size);
      to_free.insert(to_free.end(), more.begin(), more.end());
    }
  }
  for (const std::uint64_t one : to_free) cuda_.MemFreeHost(bytes_of(one));
}

}  // namespace amasia::devices::cuda
