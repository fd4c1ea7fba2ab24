// SPDX-License-Identifier: Apache-2.0
// Question: what does a block of the managed heap cost, against one of the C library?
// Expected: as much or less: jemalloc's fast path is some 20 instructions, ours adds two compares.
// Held against: malloc and free of glibc, interleaved in one run, on one thread.
//   pair    allocate and free at once (the fast path of both)
//   batch   1000 blocks allocated, then freed in the order of allocation
//   mixed   random sizes 16 … 4096 in 1000 slots, each freed before it is filled again
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "dsm/heap/heap_for_tests.hpp"

namespace amasia::dsm {
namespace {

constexpr int kRounds = 31;
constexpr int kOperations = 200'000;

struct GlibcHeap {
  void* allocate(std::size_t size) { return std::malloc(size); }
  void release(void* block) { std::free(block); }
};
struct ManagedHeap {
  void* allocate(std::size_t size) { return heap_for_tests().allocate(size); }
  void release(void* block) { heap_for_tests().release(block); }
};

void keep(void* block) { asm volatile("" : : "r"(block) : "memory"); }

template <typename Allocator>
void pairs(Allocator heap) {
  for (int i = 0; i < kOperations; ++i) {
    void* const block = heap.allocate(64);
    keep(block);
    heap.release(block);
  }
}

template <typename Allocator>
void batches(Allocator heap) {
  std::array<void*, 1000> blocks;
  for (int round = 0; round < kOperations / 1000; ++round) {
    for (void*& block : blocks) block = heap.allocate(48);
    keep(blocks[0]);
    for (void* block : blocks) heap.release(block);
  }
}

template <typename Allocator>
void mixed(Allocator heap) {
  std::array<void*, 1000> slots{};
  std::minstd_rand random(1);
  for (int i = 0; i < kOperations; ++i) {
    void*& slot = slots[random() % slots.size()];
    heap.release(slot);
    slot = heap.allocate(16 + random() % 4081);
    keep(slot);
  }
  for (void* block : slots) heap.release(block);
}

template <typename Work>
double nanoseconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / kOperations;
}

struct Summary {
  double median, mad, least;
};

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  const double least = values.front();
  for (double& value : values) value = std::abs(value - median);
  std::sort(values.begin(), values.end());
  return {median, values[values.size() / 2], least};
}

template <typename Peer, typename Ours>
void compare(const char* name, Peer peer, Ours ours) {
  std::vector<double> theirs_ns, ours_ns;
  for (int round = 0; round < kRounds; ++round) {
    theirs_ns.push_back(nanoseconds(peer));
    ours_ns.push_back(nanoseconds(ours));
  }
  const Summary a = summarize(theirs_ns), b = summarize(ours_ns);
  std::printf("%-6s glibc %6.1f ns (MAD %.1f, min %.1f)  managed %6.1f ns (MAD %.1f, min %.1f)  "
              "ratio %.2f  n %d\n",
              name, a.median, a.mad, a.least, b.median, b.mad, b.least, b.median / a.median,
              kRounds);
}

}  // namespace
}  // namespace amasia::dsm

int main() {
  using namespace amasia::dsm;  // NOLINT: the one function outside it
  compare("pair", [] { pairs(GlibcHeap{}); }, [] { pairs(ManagedHeap{}); });
  compare("batch", [] { batches(GlibcHeap{}); }, [] { batches(ManagedHeap{}); });
  compare("mixed", [] { mixed(GlibcHeap{}); }, [] { mixed(ManagedHeap{}); });
  return 0;
}
