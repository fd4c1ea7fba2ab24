// SPDX-License-Identifier: Apache-2.0
// How work items are put together where the program leaves that to the back end. Pure.
#pragma once

#include "devices/backends/backend.hpp"

namespace amasia::devices {

// What a kernel takes on a device, with the registers that it needs there.
struct GroupLimits {
  std::uint64_t most = 1;                // work items of a group
  std::uint64_t most_in[3] = {1, 1, 1};  // in each dimension
};

// Sizes of a group that divide the global ones: the largest of at most 256 work items, x first,
// which keep a multiprocessor busy and leave registers for each. Prime sizes give small groups: who
// wants speed gives sizes. Returns how many work items it has.
std::uint64_t choose_group(const Work& work, const GroupLimits& limits, std::uint64_t group[3]);

}  // namespace amasia::devices
