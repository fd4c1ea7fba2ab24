// SPDX-License-Identifier: Apache-2.0
// Which nodes share the rest of a loop, and in which proportion (libHetMP, ACM TOCS 2022, 3.4; the
// paper guesses by page fault periods and cache misses what stall accounting measures). Pure.
//
// With n_r threads that take c_r + s_r for an iteration, computing and waiting for pages, the nodes
// of a set U that all work to the end do  sum over U of n_r / (c_r + s_r)  iterations a nanosecond.
// The node that has the data waits only because others take it away, so its s counts in proportion
// to the part of those others that are in U, and it does  n / c  alone. Any other node has to fetch
// the data, alone or not.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "loops/report.hpp"

namespace amasia::loops {

struct NodeSample {
  std::uint32_t threads = 0;
  Cost cost;  // {}: never measured, so not counted on
};

struct ProbeDecision {
  std::array<std::uint32_t, base::kMaxNodes> speeds{};  // 0: the node is not used
  std::size_t nodes_used = 0;
  double shared_ns = 0;    // what the rest takes on the best set of two or more; 0: there is none
  double single_ns = 0;    // and on the best single node
  std::size_t single = 0;  // which that is

  // What the rest takes as decided.
  double best_ns() const { return nodes_used > 1 ? shared_ns : single_ns; }
};

// `remaining` iterations; the node of rank `home` has the data. At least one was measured.
ProbeDecision decide_shares(std::span<const NodeSample> samples, std::uint64_t remaining,
                            std::size_t home);

}  // namespace amasia::loops
