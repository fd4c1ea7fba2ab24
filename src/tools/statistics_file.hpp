// SPDX-License-Identifier: Apache-2.0
// Reads what `--stats=FILE` wrote (docs/statistics.md).
#pragma once

#include <string>
#include <string_view>

#include "base/base.hpp"

namespace amasia::tools {

// Errors say what is wrong, such as "regions[2].runs is missing"; keys that are not known are left
// alone. Pure.
Result<base::JobStatistics> parse_statistics(std::string_view text);

// Errors name the file, too.
Result<base::JobStatistics> load_statistics(const std::string& path);

}  // namespace amasia::tools
