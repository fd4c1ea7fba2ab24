// SPDX-License-Identifier: Apache-2.0
// What the daemon answers who asks for its state: JSON, as docs/protocols/devices.md has it.
#pragma once

#include <string>

#include "devices/daemon/state.hpp"

namespace amasia::devices {

std::string snapshot_of(const DaemonState& state, Nanos now, std::int32_t process);

}  // namespace amasia::devices
