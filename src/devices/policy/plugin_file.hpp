// SPDX-License-Identifier: Apache-2.0
// Policies as --policy names them: parts by name, or the file of a plug-in. The one place of this
// folder that does I/O: it opens the file.
#pragma once

#include <memory>
#include <string_view>

#include "devices/policy/policy.hpp"

namespace amasia::devices {

// `choice`: what make_policy takes; or with a '/' in it FILE[:OPTIONS], a plug-in. The shared
// object stays loaded until the process ends. An error is a sentence that names the file.
Result<std::unique_ptr<Policy>> policy_of(std::string_view choice, std::string_view settings);

}  // namespace amasia::devices
