// SPDX-License-Identifier: Apache-2.0
// Where managed memory lies. Every node backs all of it with one memfd, mapped twice:
//   view   what the program uses, at the same addresses on every node, registered with userfaultfd;
//   alias  the whole file once more, at any address, never registered: the runtime reads and writes
//          page contents through it without faults or protection.
// The file is numbered in pages (PageIndex = file offset / 4096):
//
//   file offset   0 ............ globals_span .................................. + span
//                 | globals      | arena 0 | arena 1 | ... | arena N-1 | (unused) |
//   view address  | where linked | base .. | base + stride ..
//
// stride = round_down(span / N, 1 GiB). Arena k is the home of node k; its first 7/8 is heap, its
// last 1/8 stacks. Globals are page-aligned ranges of loaded objects that stay at their addresses,
// numbered from page 0 in the order in which they are added; their home is the origin.
//
// Spread memory: with two nodes or more the second half of the origin's heap belongs to the other
// nodes, stripe by stripe in turn, so that one block of the origin's heap can be larger than what
// one node holds. A stripe is a segment of its own.
//
// A page that only its home has touched is a hole, or an ordinary page of the file, and costs
// nothing; nothing here knows of page states.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/base.hpp"

namespace amasia::dsm {

// Free in all processes seen, also under the address and thread sanitizers of gcc and clang.
inline constexpr std::uintptr_t kManagedBase = 0x7e90'0000'0000;
inline constexpr Bytes kManagedSpan = 1024 * base::kGiB;
inline constexpr Bytes kGlobalsSpan = 64 * base::kGiB;
inline constexpr std::size_t kMaxGlobalRanges = 1024;
inline constexpr Bytes kStripe = 4 * base::kMiB;

struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  constexpr Bytes size() const { return end - begin; }
  constexpr bool contains(std::uintptr_t address) const {
    return address >= begin && address < end;
  }
};

// A run of consecutive pages.
struct PageRun {
  PageIndex first;
  PageCount count = 0;
  friend bool operator==(const PageRun&, const PageRun&) = default;
};

// What an early step returns: it must not allocate, so it cannot return a Status.
struct [[nodiscard]] EarlyOutcome {
  const char* failed_step = nullptr;  // static text such as "map the view", or nullptr: it worked
  int errno_value = 0;
  bool ok() const { return failed_step == nullptr; }
};

// One for a process (tests make several, at different bases). Constant-initialised and trivially
// destroyed, so that it can be used from the first malloc to the last destructor.
//
//   operation            who                         when
//   map                  the first malloc or main    once, one thread
//   add_globals          launch                      after map, before the engine, one thread
//   queries              any thread, any context     after map; they only read
class AddressSpace {
 public:
  struct Settings {
    NodeId self{};
    std::uint32_t node_count = 1;
    std::uintptr_t base = kManagedBase;
    Bytes span = kManagedSpan;  // of all arenas; at least node_count GiB
    Bytes globals_span = kGlobalsSpan;
  };

  constexpr AddressSpace() = default;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Creates the file and maps view and alias of all arenas. System calls only, no allocation, no
  // lock: may be called from the first malloc. Afterwards the node's own arena is ordinary memory;
  // another node's arena must not be touched before the engine runs.
  EarlyOutcome map(const Settings& settings) noexcept;
  bool mapped() const { return alias_ != 0; }

  // Makes a page-aligned range of the process's own writable memory managed, as the next pages in
  // the file. On the origin its content moves into the file; on other nodes it becomes holes, so
  // the range reads as zero until the engine runs. Every node adds the same ranges in the same
  // order. No other thread may write to the range during the call. No allocation.
  EarlyOutcome add_globals(AddressRange range) noexcept;

  // Unmaps view and alias and closes the file, for tests. Globals stay as they are.
  void release() noexcept;

  NodeId self() const { return self_; }
  std::uint32_t node_count() const { return node_count_; }
  int file_descriptor() const { return file_; }
  AddressRange arenas() const { return {base_, base_ + stride_ * node_count_}; }
  AddressRange arena(NodeId node) const;
  AddressRange heap(NodeId node) const;
  AddressRange stacks(NodeId node) const;
  // The part of the origin's heap whose home is the other nodes; empty with one node.
  AddressRange spread() const;
  // The end of that, whose home is all nodes, the origin among them: for a block that the other
  // nodes could not hold alone.
  AddressRange even_spread() const;
  bool is_spread(PageIndex page) const noexcept;
  std::size_t global_range_count() const { return global_count_; }
  AddressRange global_range(std::size_t index) const;
  // One more than the largest PageIndex: the size of an array with an entry for each page.
  PageCount page_limit() const { return (globals_span_ + stride_ * node_count_) / base::kPageSize; }

  // nullopt: the address is not managed.
  std::optional<PageIndex> page_of(std::uintptr_t address) const noexcept;
  std::optional<PageIndex> page_of(const void* address) const noexcept {
    return page_of(reinterpret_cast<std::uintptr_t>(address));
  }
  bool is_managed(const void* address) const noexcept { return page_of(address).has_value(); }
  // A page number that came from another node must pass this before the calls below.
  bool is_valid(PageIndex page) const noexcept;
  // Whether all pages of the run are valid and lie in one segment (arena or global range), that
  // is: are consecutive in the view too.
  bool is_valid(PageRun run) const noexcept;
  // The run's longest prefix that lies in one segment, so is consecutive in the view.
  PageRun within_segment(PageRun run) const noexcept;

  std::byte* address_of(PageIndex page) const noexcept;  // in the view
  std::byte* alias_of(PageIndex page) const noexcept;
  NodeId home_of(PageIndex page) const noexcept;
  // The node whose heap or stack the page is part of; of globals the origin. It is the home but in
  // spread memory.
  NodeId arena_of(PageIndex page) const noexcept;

 private:
  struct GlobalRange {
    std::uintptr_t begin = 0;
    PageIndex first_page{};
    PageCount count = 0;
  };
  const GlobalRange* global_of(PageIndex page) const noexcept;
  PageIndex first_arena_page() const { return PageIndex{globals_span_ / base::kPageSize}; }
  PageCount first_spread_page() const {
    return first_arena_page().value + stride_ / 2 / base::kPageSize;
  }

  NodeId self_{};
  std::uint32_t node_count_ = 0;
  int file_ = -1;
  std::uintptr_t base_ = 0;
  std::uintptr_t alias_ = 0;
  Bytes stride_ = 0;
  Bytes span_ = 0;
  Bytes globals_span_ = 0;
  std::size_t global_count_ = 0;  // in the order of their page numbers
  std::array<GlobalRange, kMaxGlobalRanges> globals_{};
};

}  // namespace amasia::dsm
