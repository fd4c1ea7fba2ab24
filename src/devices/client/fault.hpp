// SPDX-License-Identifier: Apache-2.0
// What went wrong, in the terms of the C interface.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "amasia/mcl.h"
#include "devices/backends/backend.hpp"

namespace amasia::devices {

struct [[nodiscard]] Fault {
  int code = 0;        // MCL_ERR_*, positive; 0: none
  std::string reason;  // one sentence, or a compiler's log
  explicit operator bool() const { return code != 0; }
};
inline Fault no_fault() { return {}; }

template <typename... Args>
Fault fault(int code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

inline Fault fault_of(const Outcome& outcome) {
  const auto code = [&] {
    switch (outcome.failure) {
      case Failure::kNone:
        return 0;
      case Failure::kBuild:
        return MCL_ERR_INVPRG;
      case Failure::kNoKernel:
        return MCL_ERR_INVKER;
      case Failure::kArguments:
        // The back end tells the number from the size by its sentence only.
        return outcome.message.find("size") != std::string::npos ||
                       outcome.message.find("bytes") != std::string::npos
                   ? MCL_ERR_ARGSIZE
                   : MCL_ERR_ARGCOUNT;
      case Failure::kWorkSize:
        return MCL_ERR_INVPES;
      case Failure::kDeviceMemory:
        return MCL_ERR_DEVMEM;
      case Failure::kUnsupported:
        return MCL_ERR_INVPRG;
      case Failure::kDevice:
        return MCL_ERR_EXEC;
    }
    return MCL_ERR_EXEC;
  }();
  return {code, outcome.message};
}

}  // namespace amasia::devices
