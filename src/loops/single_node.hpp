// SPDX-License-Identifier: Apache-2.0
// On which single node a region is best run that is not shared (libHetMP, ACM TOCS 2022, 3.4,
// question 3). Pure.
//
// Where a node has computed a part of the region, that tells what all of it would take there. Where
// none of it was measured, the paper's rule fills the gap: a region with few cache misses for its
// instructions runs as fast as a node's cores compute, one with many as its memory lets it, which
// no calibrated speed tells.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace amasia::loops {

struct SingleNode {
  double alone_ns = 0;    // all of the work, by what it computed of it; 0: nothing was measured
  double throughput = 0;  // of all its cores, relative, as calibrated; 0: it is not to be used
  double core_speed = 0;  // of one of them
  double part = 0;        // of the work, that it did when that was measured last
};

// Of 1000 instructions: with as many misses of the last cache or more, a region is bound by memory.
// The paper's value.
inline constexpr double kMissesOfMemoryBound = 3;

// What all of the work takes on `node` alone: as measured, or, of a region with few cache misses,
// as node 0 has been measured and in proportion to throughput. 0: nothing tells. Node 0 has the
// program's data.
double alone_on(std::span<const SingleNode> nodes, std::size_t node,
                std::optional<double> misses_per_kilo);

// What the same work takes on `node` as the origin alone does in `here`, by what the others did of
// it: on the origin that would take what is left of `here` after the origin's own part. Other than
// alone_on() it does not take a node for faster that had the lighter iterations; but where sharing
// has lengthened the origin's part it finds too much. `here` if there is nothing left, or nothing
// tells.
double alone_by_rest(std::span<const SingleNode> nodes, std::size_t node, double here);

// The paper's choice, by counters only: the node of the highest throughput where there are few
// misses, else the one of the fastest cores. Of equal ones the lowest; without counters node 0.
std::size_t choose_by_counters(std::span<const SingleNode> nodes,
                               std::optional<double> misses_per_kilo);

}  // namespace amasia::loops
