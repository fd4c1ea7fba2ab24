// SPDX-License-Identifier: Apache-2.0
// `amasia calibrate [options of run] [--quick] [--plot FILE]`: measures the nodes and links of a
// job with these options, prints what was found, and keeps it for runs (docs/calibration.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::tools {

struct CalibrateArguments {
  bool quick = false;
  std::string plot;                 // "": none
  std::vector<const char*> of_run;  // the others, in their order
};
// Takes out what is this command's own. Pure.
Result<CalibrateArguments> take_calibrate_arguments(std::span<const char* const> arguments);

// Returns the exit code: 2 for bad input, 1 where only the plot could not be drawn.
int calibrate_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
