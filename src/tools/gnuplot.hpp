// SPDX-License-Identifier: Apache-2.0
// Pictures are drawn by gnuplot, through a pipe (docs/decisions/plots.md).
#pragma once

#include <string>

#include "base/base.hpp"

namespace amasia::tools {

// Runs the script, which writes a picture to `partial`, and puts that in the place of `path`. The
// error is a sentence that begins with `option`; nothing is left of the file where it did not work.
// Waits for gnuplot; main thread (it ignores SIGPIPE from then on).
Status draw(const std::string& script, const std::string& partial, const std::string& path,
            const std::string& option);

}  // namespace amasia::tools
