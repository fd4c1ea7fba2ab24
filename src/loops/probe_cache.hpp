// SPDX-License-Identifier: Apache-2.0
// What earlier runs of a loop told about the nodes, and the speeds that its next run begins with
// (libHetMP, ACM TOCS 2022, 3.2). Pure state on the origin; whoever holds it guards it.
//
// For each loop and node the time for an iteration is kept as an exponentially weighted mean, newer
// runs first: what the first ones cost, data comes along with them. After kProbes runs the speeds
// are settled, and stay so while the mean of what is measured stays within its own noise: with the
// same speeds each node gets the same iterations, and its data stays where it is.
//   state    a run ends                                           the next run
//   probing  some node has told nothing yet                       probes again
//            fewer than kRetries runs, and some node is not used  probes again
//            else                                                 known speeds, from the means
//   settled  as expected, or unexpected for the first time        the same known speeds
//            unexpected twice in a row: the means start anew      as in probing
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>

#include "loops/probe_decision.hpp"
#include "loops/report.hpp"

namespace amasia::loops {

// What all nodes begin the next run of a loop with.
struct NextRun {
  std::array<std::uint32_t, base::kMaxNodes> speeds{};  // by rank
  bool known = false;                                   // else: probe
  friend bool operator==(const NextRun&, const NextRun&) = default;
};

class ProbeCache {
 public:
  // How many runs are averaged before speeds settle (the paper's number).
  static constexpr std::uint32_t kProbes = 10;
  // How many runs try all nodes where the first said that some are not worth it: it was charged for
  // data that comes once.
  static constexpr std::uint32_t kRetries = 3;

  struct NodeEntry {
    Cost mean;
    double faults = 0;     // an iteration
    double deviation = 0;  // of the whole cost, mean of its absolute value
    std::uint32_t runs = 0;
  };

  // A run of the loop `key` by nodes with these threads ends, of which each told a report; a key
  // stands for a loop and the nodes that share it, rank 0 has the data.
  NextRun finish(std::uint64_t key, std::span<const std::uint32_t> threads,
                 std::span<const Report> reports);

  // What is known of a node; nullptr: nothing.
  const NodeEntry* find(std::uint64_t key, std::size_t rank) const;
  // What an iteration of the loop's next run is expected to take, all nodes working; 0: not known.
  double expected_ns(std::uint64_t key) const;

 private:
  struct Loop {
    std::array<NodeEntry, base::kMaxNodes> nodes;
    std::uint32_t runs = 0;
    std::uint32_t surprises = 0;  // in a row
    NextRun next;
    double expected_ns = 0;  // for an iteration, by all nodes
  };

  static bool note(NodeEntry& node, const Report& report, bool settled);
  static void weigh(Loop& loop, std::span<const std::uint32_t> threads);

  std::map<std::uint64_t, Loop> loops_;
};

}  // namespace amasia::loops
