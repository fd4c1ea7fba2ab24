// SPDX-License-Identifier: Apache-2.0
// `amasia machine [FILE] [--draw PICTURE.svg]`: writes the platform of this machine for tasks, to
// standard output, and draws it. With FILE, that platform is checked and written or drawn instead
// (docs/platform.md).
#pragma once

#include <span>
#include <string>

#include "base/base.hpp"

namespace amasia::tools {

struct MachineArguments {
  std::string file;     // "": look at this machine
  std::string drawing;  // "": none
};
// Pure.
Result<MachineArguments> take_machine_arguments(std::span<const char* const> arguments);

// Returns the exit code: 2 for bad input, 1 where the machine or the picture fails.
int machine_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
