// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace amasia::base {

// The text as a string of JSON, in quotes: control characters escaped, UTF-8 as it is. A byte that
// is no part of UTF-8 becomes U+FFFD, since readers of JSON refuse the whole text for it.
std::string json_text(std::string_view text);

}  // namespace amasia::base
