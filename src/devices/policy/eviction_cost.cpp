// SPDX-License-Identifier: Apache-2.0
// The queue is known, which a cache's future is not: of what queued tasks read, the copy whose turn
// comes last goes (Belady, IBM Systems Journal 1966), and only when nothing else is left. Among the
// others GreedyDual-Size (Cao, Irani; USITS 1997): a copy's credit is what having it again would
// take, per byte, on top of the credit of what went last; so what is dear to bring back stays
// longer, but not for ever.
#include "devices/policy/eviction.hpp"

namespace amasia::devices::policy {
namespace {

// Beyond any credit, in nanoseconds per byte; whole numbers up to twice that are exact.
constexpr double kQueued = 4e15;

void touch(Copy& copy, const DeviceUse& device, Nanos reload) {
  const double bytes = static_cast<double>(std::max<Bytes>(copy.bytes, 1));
  copy.credit = device.evicted_credit + static_cast<double>(reload) / bytes;
}

double worth(const Copy& copy, std::uint64_t next_use) {
  if (next_use == 0) return std::min(copy.credit, kQueued / 2);
  return 2 * kQueued - std::min(static_cast<double>(next_use), kQueued);
}

void went(DeviceUse& device, double worth) {
  if (worth < kQueued) device.evicted_credit = std::max(device.evicted_credit, worth);
}

}  // namespace

const EvictionPolicy kCostEviction = {
    .name = "cost",
    .description =
        "what no queued task reads and costs least to bring back; else what is read last",
    .touch = touch,
    .worth = worth,
    .went = went};

}  // namespace amasia::devices::policy
