// SPDX-License-Identifier: Apache-2.0
// `amasia run [options] program arguments…`
#pragma once

#include <span>

namespace amasia::tools {

// Returns the exit code of the tool; does not return where the program replaces this process or has
// ended by a signal.
int run_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
