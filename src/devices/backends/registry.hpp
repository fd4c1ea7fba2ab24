// SPDX-License-Identifier: Apache-2.0
// All back ends, in the order in which a client tries them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/backends/backend.hpp"
#include "devices/backends/program_cache.hpp"

namespace amasia::devices {

struct Backends {
  std::unique_ptr<ProgramCache> cache;  // outlives them
  std::vector<std::unique_ptr<Backend>> all;
  std::string absent;  // why others are not there: "cuda: …; opencl: …"
};

// The back ends whose names stand in `wanted` (AMASIA_DEVICES_BACKENDS, such as "host,opencl"; "":
// all), each with its devices, in that order: a device that several show is used by the first that
// takes the program. One that has no device here, or whose driver is not installed, is
// left out. Blocks while drivers look for hardware. Logs (at level info) why.
Backends make_backends(std::string_view wanted);

}  // namespace amasia::devices
