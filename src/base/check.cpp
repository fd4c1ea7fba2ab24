// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <unistd.h>

#include <cstdlib>

#include "base/log.hpp"

namespace amasia::base {

void check_failed(const char* file, int line, const char* condition,
                  const char* explanation) noexcept {
  log_line(LogLevel::kError, "{}:{}: check failed: {} ({})", file, line, condition, explanation);
  std::abort();
}

}  // namespace amasia::base
