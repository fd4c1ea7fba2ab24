// SPDX-License-Identifier: Apache-2.0
#include "fabric/link_timing.hpp"

#include <algorithm>
#include <cmath>

namespace amasia::fabric {

Nanos LinkTiming::due(Nanos sent, Bytes bytes) {
  free_ = std::max(free_, sent);
  if (speed_.bytes_per_ns > 0) {
    free_ += static_cast<Nanos>(std::ceil(static_cast<double>(bytes) / speed_.bytes_per_ns));
  }
  return free_ + speed_.latency;
}

}  // namespace amasia::fabric
