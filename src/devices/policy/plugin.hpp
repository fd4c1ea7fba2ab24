// SPDX-License-Identifier: Apache-2.0
// A plug-in's table (include/amasia/device_policy.h) as a chooser. What it answers is judged by the
// Scheduler. Opening the shared object is the daemon's business.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "amasia/device_policy.h"
#include "devices/policy/chooser.hpp"

namespace amasia::devices::policy {

// Refuses tables of another ABI, with functions missing, or whose init fails.
Result<std::unique_ptr<Chooser>> make_plugin_chooser(const amasia_device_policy& plugin,
                                                     const std::string& options);

}  // namespace amasia::devices::policy
