// SPDX-License-Identifier: Apache-2.0
// What came of loops that were handed out at run time, for `--stats`: on the origin, by region and
// place in the program. Plain state: whoever holds it guards it.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.hpp"
#include "loops/loops.hpp"

namespace amasia::omp {

// One run of a loop, as it ended.
struct LoopRunOutcome {
  struct Part {
    NodeId node;
    std::uint64_t given = 0;  // of `count`
    std::uint32_t speed = 0;  // that the node's threads counted with at the end
    loops::Cost cost;          // of one of `count`, as runs' reports have told; {}: they did not
    std::uint32_t probes = 0;  // runs that told
  };
  std::uint64_t count = 0;  // what was handed out: iterations, or runs of them that stay together
  Nanos elapsed = 0;        // on the origin, from its first thread in to its last one out
  Nanos expected = 0;       // 0: nothing was known before or found out during the run
  std::vector<Part> parts;  // by rank
};

struct LoopOutcome {
  std::uint64_t runs = 0;
  Nanos elapsed_ns = 0;
  // Of runs for which something was expected.
  std::uint64_t expected_runs = 0;
  Nanos expected_ns = 0;
  Nanos measured_ns = 0;
  LoopRunOutcome last;
};

// What the loops of a region that are handed out at run time say about its nodes: one of which none
// of them has a use for, by what it has measured, needs no part in the region.
struct LoopAdvice {
  std::bitset<base::kMaxNodes> asked, used;
  // One of them that keeps its shares once it has found them begins its next run with others.
  bool moves = false;
  // Of the one that was handed out in parts: how its cost is spread, if that is clear, and which
  // part of it each node had, by node.
  std::optional<loops::CostSpread> spread;
  std::array<double, base::kMaxNodes> parts{};

  void note(std::uint32_t node, bool uses) {
    asked.set(node);
    if (uses) used.set(node);
  }
  bool is_idle(std::size_t node) const { return asked.test(node) && !used.test(node); }
};

class LoopOutcomes {
 public:
  static constexpr std::size_t kMostLoops = 4096;

  // What exceeds kMostLoops is left out.
  void add(const void* function, const void* code, LoopRunOutcome run);
  // nullptr: no run of it has ended.
  const LoopOutcome* find(const void* function, const void* code) const;

 private:
  std::map<std::pair<const void*, const void*>, LoopOutcome> loops_;
};

}  // namespace amasia::omp
