// SPDX-License-Identifier: Apache-2.0
#include "os/numa.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace amasia::os {
namespace {

constexpr int kMpolPreferred = 1;
constexpr std::size_t kMostNodes = 1024;

}  // namespace

void* allocate_on_numa_node(Bytes bytes, int node) noexcept {
  void* const block =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  if (node >= 0 && static_cast<std::size_t>(node) < kMostNodes) {
    std::array<unsigned long, kMostNodes / 64> nodes{};
    nodes[static_cast<std::size_t>(node) / 64] = 1ul << (node % 64);
    // A wish: what cannot be had leaves the pages where they come to be.
    static_cast<void>(::syscall(SYS_mbind, block, bytes, kMpolPreferred, nodes.data(),
                                kMostNodes + 1, 0));
  }
  return block;
}

void free_on_numa_node(void* block, Bytes bytes) noexcept { ::munmap(block, bytes); }

}  // namespace amasia::os
