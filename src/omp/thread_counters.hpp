// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/base.hpp"

namespace amasia::omp {

// What the calling thread has waited for so far; differences are taken over a region.
struct ThreadCounters {
  std::uint64_t faults = 0;
  Nanos stall_ns = 0;  // for managed pages, and for its system calls' way to the origin and back
  Nanos calls_ns = 0;  // for such calls themselves, which are its work
};

}  // namespace amasia::omp
