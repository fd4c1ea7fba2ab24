// SPDX-License-Identifier: Apache-2.0
// What threads measured while they executed iterations, and the speeds that follow from it.
#pragma once

#include <cstdint>
#include <span>

#include "loops/weights.hpp"

namespace amasia::loops {

// Sums over the threads of a node. A thread's time in its iterations is compute + stall.
struct Report {
  std::uint64_t iterations = 0;
  std::uint64_t compute_ns = 0;
  std::uint64_t stall_ns = 0;  // waiting for pages of other nodes
  std::uint64_t faults = 0;
  // Of a loop that is handed out in parts: so long they had their cores, which others may want
  // meanwhile to serve pages.
  std::uint64_t cpu_ns = 0;

  constexpr Report& operator+=(const Report& other) {
    iterations += other.iterations;
    compute_ns += other.compute_ns;
    stall_ns += other.stall_ns;
    faults += other.faults;
    cpu_ns += other.cpu_ns;
    return *this;
  }
  friend constexpr bool operator==(const Report&, const Report&) = default;
};

// A thread's time for an iteration, in ns; 0: nothing is known.
struct Cost {
  double compute = 0;
  double stall = 0;

  constexpr double total() const { return compute + stall; }
};
// Iterations that took no time by the clock count as a little.
Cost cost_of(const Report& report);

// The speed of a core where the fastest has `least_ns` an iteration and this one `ns`: between 1
// and kFastest.
inline constexpr std::uint32_t kFastest = 1u << 20;
std::uint32_t speed_from(double ns, double least_ns);

}  // namespace amasia::loops
