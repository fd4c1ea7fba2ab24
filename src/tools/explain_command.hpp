// SPDX-License-Identifier: Apache-2.0
// `amasia explain STATS.json`: where each region ran, by which shares, and why, from what
// `amasia run --stats=FILE` wrote.
#pragma once

#include <span>
#include <string>

#include "base/base.hpp"

namespace amasia::tools {

// Regions by elapsed time, longest first. Pure.
std::string explanation(const base::JobStatistics& job);

// Prints it; returns 2 for bad arguments and for a file that is none of ours, else 0.
int explain_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
