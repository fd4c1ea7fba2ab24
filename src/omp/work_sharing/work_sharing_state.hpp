// SPDX-License-Identifier: Apache-2.0
// What WorkSharing's files know of a loop under way, and its messages. Only these include it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

inline constexpr fabric::MessageType kWantMessage = kWorkSharingFirst;
inline constexpr fabric::MessageType kGiveMessage = kWorkSharingFirst + 1;

// A node that shares a loop, in messages.
struct WorkSharing::Sharer {
  std::uint16_t node;
  loops::Seam seam;
  std::uint32_t threads;
  std::uint32_t speed;  // that the loop begins with
};

// From a node to the origin: what the origin needs to make the loop's dealer, should this be the
// first request, and what the node has executed. The sharers follow, by rank.
struct WorkSharing::WantBody {
  std::uint32_t region;
  std::uint16_t nodes;
  std::uint16_t rank;
  std::uint64_t number;
  std::uint64_t count;
  std::uint64_t chunk;
  std::uint64_t key;
  loops::ScheduleKind kind;
  std::uint8_t known;
  std::uint8_t by_region;  // with `first`: loops::LoopTerms
  std::uint8_t unused[3];
  std::uint16_t first;
  loops::Report report;  // since the last request
  loops::Report late;    // of the loop's last run, after its last request
};

struct WorkSharing::Want {
  WantBody body{};
  std::array<Sharer, base::kMaxNodes> sharers;

  std::span<const Sharer> all() const { return {sharers.data(), body.nodes}; }
};

// The origin's answer. When there is no more, the speeds of the next run follow, by rank.
struct WorkSharing::GiveBody {
  std::uint32_t region;
  std::uint16_t nodes;
  std::uint8_t more;
  std::uint8_t known;  // the next run
  std::uint64_t number;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t piece;
};

struct WorkSharing::Give {
  NodeId to;
  GiveBody body{};
  std::array<std::uint32_t, base::kMaxNodes> speeds;

  std::span<const std::uint32_t> all() const {
    return {speeds.data(), body.more != 0 ? std::size_t{0} : body.nodes};
  }
};

struct WorkSharing::NodeLoop {
  std::mutex mutex;
  Want want{};  // what to send when the pool runs low; constant, but for the reports
  loops::NodePool pool;
  loops::Report news;  // what was executed since the last request
  // Where it is, when the node's first thread came to it, and what the nodes count with.
  const void* function = nullptr;
  const void* code = nullptr;
  Nanos opened = 0;
  std::array<loops::Power, base::kMaxNodes> powers;
  std::uint32_t threads_here = 0;  // of the node that have not ended the loop
  // Refills delivered. Release by who delivers, acquire by who waits for one.
  std::atomic<std::uint32_t> deliveries{0};
};

struct WorkSharing::GlobalLoop {
  loops::Dealer dealer;
  Want want;                             // the first one: who shares the loop, and how it began
  std::uint32_t nodes_to_tell = 0;       // that do not know yet that there is no more
  std::vector<loops::Report> totals;     // by rank
  std::optional<loops::NextRun> next{};  // once a node was told that there is no more
  double expected_ns = 0;                // of an iteration, before the run; 0: nothing was known
  Nanos expected_end = 0;                // by the run's first decision; 0: there was none
  // Once the origin's threads have left the loop: where it is, and when they came and went.
  const void* function = nullptr;
  const void* code = nullptr;
  Nanos opened = 0, left = 0;
};

}  // namespace amasia::omp
