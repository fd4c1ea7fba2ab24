// SPDX-License-Identifier: Apache-2.0
#include "fabric/messages.hpp"
#include "os/os.hpp"

namespace amasia::fabric {

std::uint32_t wait_and_poll(Fabric& fabric, std::uint32_t budget, Nanos spin, Nanos timeout) {
  const Nanos begin = os::monotonic_now();
  const Nanos spin_end = begin + spin;
  const Nanos end = begin + timeout;
  for (;;) {
    const std::uint32_t dispatched = fabric.poll(budget);
    if (dispatched != 0) return dispatched;
    const Nanos now = os::monotonic_now();
    if (now >= end) return 0;
    if (now < spin_end || !fabric.arm()) continue;
    const int descriptor = fabric.wait_descriptor();
    os::wait_readable(&descriptor, 1, end - now);
  }
}

}  // namespace amasia::fabric
