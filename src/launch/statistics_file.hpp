// SPDX-License-Identifier: Apache-2.0
// Reads what `--stats=FILE` wrote (docs/statistics.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/base.hpp"

namespace amasia::launch {

// Errors say what is wrong, such as "regions[2].runs is missing"; keys that are not known are left
// alone. Pure.
Result<base::JobStatistics> parse_statistics(std::string_view text);

// Errors name the file, too.
Result<base::JobStatistics> load_statistics(const std::string& path);

// What --profile names; nullopt: nothing yet, as it is the file that --stats will write.
Result<std::optional<base::JobStatistics>> load_profile(const base::Options& options);

}  // namespace amasia::launch
