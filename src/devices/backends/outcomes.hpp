// SPDX-License-Identifier: Apache-2.0
// How back ends speak of programs and of what failed.
#pragma once

#include <string>
#include <utility>

#include "devices/backends/backend.hpp"

namespace amasia::devices {

inline Outcome failed(Failure failure, std::string message) {
  Outcome outcome;
  outcome.failure = failure;
  outcome.message = std::move(message);
  return outcome;
}

inline std::string title_of(const ProgramCode& code) {
  return code.path.empty() ? std::string("the program") : "the program '" + code.path + "'";
}

}  // namespace amasia::devices
