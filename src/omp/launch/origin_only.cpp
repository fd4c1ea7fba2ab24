// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/origin_only.hpp"

#include "omp/launch/process.hpp"

namespace amasia::omp {

bool refuses_on_this_node(const char* call) {
  if (!process.managed || process.is_child || process.space.self() == base::kOrigin) return false;
  base::log_line(base::LogLevel::kWarning, "{} is possible on node 0 only and fails here", call);
  return true;
}

}  // namespace amasia::omp
