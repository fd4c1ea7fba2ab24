// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/work_group.hpp"

#include <algorithm>

namespace amasia::devices {
namespace {

constexpr std::uint64_t kWanted = 256;

std::uint64_t largest_divisor(std::uint64_t number, std::uint64_t most) {
  for (std::uint64_t divisor = std::min(number, most); divisor > 1; --divisor) {
    if (number % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

std::uint64_t choose_group(const Work& work, const GroupLimits& limits, std::uint64_t group[3]) {
  std::uint64_t items = 1;
  std::fill(group, group + 3, 1);
  for (unsigned d = 0; d < work.dimensions; ++d) {
    const std::uint64_t left = std::min(limits.most, kWanted) / items;
    group[d] = largest_divisor(work.global[d],
                               std::min(std::max<std::uint64_t>(left, 1), limits.most_in[d]));
    items *= group[d];
  }
  return items;
}

}  // namespace amasia::devices
