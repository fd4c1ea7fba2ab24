// SPDX-License-Identifier: Apache-2.0
#include "loops/cpu_limit.hpp"

#include <algorithm>

namespace amasia::loops {

Nanos sustained_time(const CpuLimit& limit, Nanos cpu, Nanos rest) {
  if (!limit.holds()) return 0;
  const auto needed = static_cast<Nanos>(static_cast<double>(cpu) / limit.cores);
  return std::max<Nanos>(0, needed - std::clamp<Nanos>(rest, 0, limit.period));
}

}  // namespace amasia::loops
