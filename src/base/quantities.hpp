// SPDX-License-Identifier: Apache-2.0
// Durations and volumes for people.
#pragma once

#include <string>

#include "base/units.hpp"

namespace amasia::base {

// Two to five digits in the unit that keeps it short: "950 ns", "21.3 ms". Allocates; any thread.
std::string duration_text(Nanos nanos);
std::string volume_text(Bytes bytes);

}  // namespace amasia::base
