// SPDX-License-Identifier: Apache-2.0
// The job board: a page or more of memory that the launcher shares with its nodes, in which each
// node publishes what it is doing. When a node dies or hangs, the launcher reads it there, since
// the node itself can no longer be asked.
//
// field             | written by                    | read by
// state, progress   | any thread of the slot's node | launcher
// region, waits_for | any thread of the slot's node | launcher
// raised            | any thread of the slot's node | launcher
// common memory     | as the layer above decides    | nodes of this host and launcher
//
// operation         | effect
// BoardText::set    | publishes a text, or drops it if another thread is publishing one
// BoardText::read   | a text as published, or the torn one of a writer that died within set
//
// Invariants: B1 a writer never waits. B2 readers never write. B3 a slot has one node as writer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::launch {

// A short text under a sequence lock whose words are atomics.
class BoardText {
 public:
  static constexpr std::size_t kSize = 192;  // longer texts are cut

  // Any thread; lock-free, allocates nothing, touches no memory but its own.
  void set(std::string_view text) noexcept;
  void clear() noexcept { set({}); }
  // What a writer has set; beside one that died within set(), perhaps some of one text and some of
  // another. Any thread, does not wait.
  std::string read() const;
  // One attempt of that: nullopt if a writer is at it.
  std::optional<std::string> read_whole() const;

 private:
  std::string read_words(bool* whole) const;
  static constexpr std::size_t kWords = kSize / sizeof(std::uint64_t);
  std::atomic<std::uint32_t> sequence_;  // odd while a writer is in set()
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};

enum class NodeState : std::uint32_t {
  kAbsent = 0,     // has not joined
  kStarting = 1,   // joined, not ready
  kServing = 2,    // between regions (a worker), or in a serial part (the origin)
  kInRegion = 3,   // `region` says which
  kFinishing = 4,  // the program ends
};
const char* state_name(NodeState state) noexcept;

struct alignas(64) BoardSlot {
  std::atomic<NodeState> state;
  // Counts whatever shows that the node is alive: regions begun and ended, barriers passed, chunks
  // taken. The watchdog compares it between two looks. Relaxed: it orders nothing.
  std::atomic<std::uint64_t> progress;
  BoardText region;     // site of the region, as in the statistics
  BoardText waits_for;  // "barrier of node 0", "page 0x7e90… from node 2", … or empty
  // The signal that the program last sent to its own process here; 0: none. Relaxed: the launcher
  // reads it once the process has ended.
  std::atomic<std::int32_t> raised;

  void advance() noexcept { progress.fetch_add(1, std::memory_order_relaxed); }
  // Release/acquire with the launcher's read: the text set before belongs to the state.
  void enter_region(std::string_view site) noexcept;
  void leave_region() noexcept;
};

// A mapping of the whole board. The launcher creates it, nodes open what they were handed.
class JobBoard {
 public:
  static Result<JobBoard> create();
  // Takes `descriptor`, also on failure.
  static Result<JobBoard> open(int descriptor);
  JobBoard(JobBoard&& other) noexcept;
  JobBoard& operator=(JobBoard&&) = delete;
  ~JobBoard();

  BoardSlot& slot(NodeId node) {
    AMASIA_CHECK(node.value < base::kMaxNodes, "the board has a slot for each possible node");
    return slots_[node.value];
  }
  const BoardSlot& slot(NodeId node) const { return const_cast<JobBoard*>(this)->slot(node); }
  // Memory behind the slots that only the nodes use: zeroes at first, page-aligned. What is never
  // touched of it costs nothing.
  static constexpr Bytes kCommonSize = base::kMiB;
  std::span<std::byte> common();
  // What the launcher passes on; owned by the board.
  int descriptor() const { return descriptor_.get(); }
  // One line on a node: state, region, what it waits for.
  std::string describe(NodeId node) const;

 private:
  JobBoard(os::Descriptor descriptor, BoardSlot* slots);
  os::Descriptor descriptor_;
  BoardSlot* slots_;
};

}  // namespace amasia::launch
