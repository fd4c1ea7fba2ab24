// SPDX-License-Identifier: Apache-2.0
// `amasia report`: what a trace of amasia-deviced says (docs/device_tools.md).
#pragma once

#include <span>

namespace amasia::tools {

// Arguments: TRACE.json [--png FILE] [--html FILE]. Returns the exit code: 0, 2 for a mistake of
// the user's, 1 where a file could not be written.
int report_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
