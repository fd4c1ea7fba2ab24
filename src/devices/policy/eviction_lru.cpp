// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/eviction.hpp"

namespace amasia::devices::policy {

const EvictionPolicy kLruEviction = {
    .name = "lru",
    .description = "the copy whose last use is longest ago",
    .touch = [](Copy&, const DeviceUse&, Nanos) {},
    .worth = [](const Copy& copy, std::uint64_t) { return static_cast<double>(copy.used_at); },
    .went = [](DeviceUse&, double) {}};

}  // namespace amasia::devices::policy
