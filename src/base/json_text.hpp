// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace amasia::base {

// The text as a string of JSON, in quotes: control characters escaped, bytes from 0x7f on as they
// are, so that UTF-8 stays what it is.
std::string json_text(std::string_view text);

}  // namespace amasia::base
