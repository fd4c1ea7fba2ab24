// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <cstring>

namespace amasia::base {

Error errno_error(int errno_value, std::string what) {
  char buffer[128];
  what += ": ";
  what += strerror_r(errno_value, buffer, sizeof buffer);  // the GNU form, which returns the text
  return Error{std::move(what), errno_value};
}

}  // namespace amasia::base
