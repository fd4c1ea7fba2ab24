// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::fabric {

// The version of the UCX library that is loaded.
std::string ucx_version();
// Transports that UCX can use on this host, each once: "tcp", "posix", "sysv", "cma", …
// Opens and closes UCX's components; blocks for some milliseconds.
Result<std::vector<std::string>> ucx_transports();

}  // namespace amasia::fabric
