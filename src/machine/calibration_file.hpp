// SPDX-License-Identifier: Apache-2.0
// The file that calibrations are kept in.
#pragma once

#include <string>
#include <vector>

#include "base/base.hpp"
#include "machine/calibration.hpp"

namespace amasia::machine {

// `chosen` if it is not "", else calibration.json in $XDG_CONFIG_HOME/amasia or ~/.config/amasia;
// "" where there is neither.
std::string calibration_path(const std::string& chosen);

// No file: an empty list. Else what it holds, or the whole sentence that says what is wrong with
// it.
Result<std::vector<Calibration>> load_calibrations(const std::string& path);

// Adds it to what the file holds, making its folder if need be. Readers see the old file or the new
// one; of two writers at once the last one's may be the only new one. A file that is not understood
// is left as it is, and told of.
Status store_calibration(const std::string& path, Calibration calibration);

// Whether store_calibration() would find a place there, as far as one can tell beforehand.
Status check_can_store(const std::string& path);

}  // namespace amasia::machine
