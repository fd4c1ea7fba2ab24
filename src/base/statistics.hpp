// SPDX-License-Identifier: Apache-2.0
// What `--stats` reports, as plain values: every node fills one NodeStatistics and one
// RegionStatistics a region; workers send theirs to the origin, which merges and prints them.
//
// All structs are trivially copyable and hold no pointers, so they travel in messages as bytes
// between nodes (the same image, hence the same layout).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.hpp"

namespace amasia::base {

// Counters of one node since its start. Field names are those of the JSON document.
struct NodeStatistics {
  std::uint32_t id = 0;
  std::uint32_t pid = 0;
  std::uint64_t faults_read = 0;     // a page was not here and was read
  std::uint64_t faults_write = 0;    // a page was not here and was written
  std::uint64_t faults_upgrade = 0;  // a read copy was here and was written
  std::uint64_t pages_in = 0;        // pages whose contents came to this node
  std::uint64_t pages_out = 0;
  std::uint64_t bytes_in = 0;  // of all messages, frames included
  std::uint64_t bytes_out = 0;
  std::uint64_t messages = 0;       // sent by this node
  Nanos stall_ns = 0;               // sum over threads of the time spent waiting for managed pages
  std::uint64_t pages_evicted = 0;  // copies given up to stay within --memory
  std::uint64_t memory_max = 0;     // the most bytes of managed memory seen at once
};

// One region, by its site; counters are sums over its runs and over the nodes.
struct RegionStatistics {
  static constexpr std::size_t kSiteSize = 192;
  static constexpr std::size_t kReasonSize = 128;

  char site[kSiteSize] = {};                  // "file:line" or "symbol+0x12"; cut when longer
  char single_node_reason[kReasonSize] = {};  // why (the last time) only one node took part, or ""
  std::uint64_t runs = 0;
  std::uint64_t single_node_runs = 0;  // runs that stayed on the origin for that reason
  std::uint32_t nodes = 0;             // the largest number of nodes that took part
  std::uint32_t reserved = 0;
  std::uint64_t faults = 0;  // of all three kinds
  Nanos stall_ns = 0;
  Nanos elapsed_ns = 0;  // on the origin, from fork to join

  void set_site(std::string_view text) noexcept { assign(site, kSiteSize, text); }
  void set_single_node_reason(std::string_view text) noexcept {
    assign(single_node_reason, kReasonSize, text);
  }

 private:
  static void assign(char* field, std::size_t size, std::string_view text) noexcept {
    const std::size_t length = text.size() < size ? text.size() : size - 1;
    std::memcpy(field, text.data(), length);
    std::memset(field + length, 0, size - length);
  }
};

static_assert(std::is_trivially_copyable_v<NodeStatistics>);
static_assert(std::is_trivially_copyable_v<RegionStatistics>);

struct JobStatistics {
  std::vector<NodeStatistics> nodes;
  std::vector<RegionStatistics> regions;
};

// Adds a worker's regions to the origin's: by site; runs, nodes, reason and elapsed time are the
// origin's, faults and stall are summed. A region that the origin does not know is appended.
void merge_regions(std::vector<RegionStatistics>& into, std::span<const RegionStatistics> from);

// The JSON document of `--stats=FILE`:
// {"nodes":[{"id",…}…],"regions":[{"site","runs","nodes","single_node_reason",…}…]}.
// `single_node_reason` is null where there is none. Allocates; any thread.
std::string to_json(const JobStatistics& job);

// The same for people: two tables with a heading each, regions by elapsed time, longest first.
std::string to_table(const JobStatistics& job);

}  // namespace amasia::base
