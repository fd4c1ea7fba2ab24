// SPDX-License-Identifier: Apache-2.0
#include "tools/core_shares.hpp"

#include <algorithm>

#include "base/base.hpp"

namespace amasia::tools {

std::vector<int> core_share(const std::vector<int>& cores, std::size_t index, std::size_t count) {
  AMASIA_CHECK(index < count, "a share beyond the last one");
  if (cores.empty()) return {};
  if (cores.size() < count) return {cores[index % cores.size()]};
  const std::size_t size = cores.size() / count, larger = cores.size() % count;
  const auto from = static_cast<std::ptrdiff_t>(index * size + std::min(index, larger));
  const auto to = from + static_cast<std::ptrdiff_t>(size + (index < larger ? 1 : 0));
  return {cores.begin() + from, cores.begin() + to};
}

}  // namespace amasia::tools
