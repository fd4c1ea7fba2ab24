// SPDX-License-Identifier: Apache-2.0
// GreedyDual-Size (Cao, Irani; USITS 1997): a copy's credit is what having it again would take, per
// byte, on top of the credit of what went last; so what is dear to bring back stays longer, but not
// for ever. What a queued task reads goes only when nothing else is left: the queue is known, which
// a cache's future is not.
#include "devices/policy/eviction.hpp"

namespace amasia::devices::policy {
namespace {

constexpr double kWanted = 1e12;  // ns per byte: beyond any credit

void touch(Copy& copy, const DeviceUse& device, Nanos reload) {
  const double bytes = static_cast<double>(std::max<Bytes>(copy.bytes, 1));
  copy.credit = device.evicted_credit + static_cast<double>(reload) / bytes;
}

void went(DeviceUse& device, double worth) {
  if (worth < kWanted) device.evicted_credit = std::max(device.evicted_credit, worth);
}

}  // namespace

const EvictionPolicy kCostEviction = {
    .name = "cost",
    .description = "the copy that costs least to bring back, and that no queued task reads",
    .touch = touch,
    .worth = [](const Copy& copy, bool wanted) { return copy.credit + (wanted ? kWanted : 0); },
    .went = went};

}  // namespace amasia::devices::policy
