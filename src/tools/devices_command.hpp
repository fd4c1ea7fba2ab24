// SPDX-License-Identifier: Apache-2.0
// `amasia devices` and `amasia top`: the node's devices and what they do (docs/device_tools.md).
#pragma once

#include <span>

namespace amasia::tools {

// Arguments: [policies] [--socket PATH]. Returns the exit code.
int devices_command(std::span<const char* const> arguments);
// Arguments: [--once] [--interval SECONDS] [--socket PATH]. Until it is interrupted, or the daemon
// ends (exit code 0), or `--once`.
int top_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
