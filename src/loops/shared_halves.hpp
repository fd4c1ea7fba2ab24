// SPDX-License-Identifier: Apache-2.0
// For tests: executions of a region that two nodes share evenly.
#pragma once

#include <algorithm>
#include <array>

#include "loops/sharing_model.hpp"

namespace amasia::loops {

// One execution on two nodes that did half of the work each; before it those alone that the model
// wants to try, which take the sum of what both compute.
inline void observe_halves(SharingModel& model, Nanos busy, Nanos stall_0, Nanos stall_1,
                           Nanos rest = 100) {
  while (model.phase() == SharingModel::Phase::kTrial) model.observe_alone(2 * busy, 0);
  const std::array<RegionPart, 2> parts{
      RegionPart{.threads = 1, .work = 0.5, .busy = busy, .stall = stall_0, .faults = 1},
      RegionPart{.threads = 1, .work = 0.5, .busy = busy, .stall = stall_1, .faults = 1}};
  model.observe_shared(parts, busy + std::max(stall_0, stall_1) + rest, true);
}

}  // namespace amasia::loops
