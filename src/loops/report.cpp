// SPDX-License-Identifier: Apache-2.0
#include "loops/report.hpp"

#include <algorithm>

namespace amasia::loops {

Cost cost_of(const Report& report) {
  if (report.iterations == 0) return {};
  const auto iterations = static_cast<double>(report.iterations);
  return {std::max(static_cast<double>(report.compute_ns), 1.0) / iterations,
          static_cast<double>(report.stall_ns) / iterations};
}

std::uint32_t speed_from(double ns, double least_ns) {
  AMASIA_CHECK(least_ns > 0 && ns >= least_ns, "the fastest core takes the least time");
  return std::max(static_cast<std::uint32_t>(kFastest * (least_ns / ns)), 1u);
}

}  // namespace amasia::loops
