// SPDX-License-Identifier: Apache-2.0
// Where `--stats` puts its report.
#pragma once

#include <string>

#include "base/base.hpp"

namespace amasia::launch {

// `destination` as in Options::stats: "" writes nothing, "-" the table to standard error, anything
// else the JSON document to that file, replaced as a whole. Blocks on the file system.
Status write_statistics(const std::string& destination, const base::JobStatistics& job);

// Whether write_statistics could write there now, so that a long run does not end without. Leaves a
// file that is there as it is. Any thread; blocks on the file system.
Status check_statistics_destination(const std::string& destination);

}  // namespace amasia::launch
