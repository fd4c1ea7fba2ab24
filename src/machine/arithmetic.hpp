// SPDX-License-Identifier: Apache-2.0
// The operations that the speed of a core is told in: additions and multiplications of doubles that
// lie in one page, four chains of them, so that neither the width of a vector unit nor the cache
// decides. All that measures the speed of a core uses this, so that figures can be compared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::machine {

inline constexpr std::size_t kDoublesPerPage = base::kPageSize / sizeof(double);
// One pass over a page makes as many operations as the page has bytes: 1 operation per byte.
inline constexpr double kOpsPerPass = static_cast<double>(base::kPageSize);

// Returns a value that depends on all of them. The page is read only; results stay between 0 and 4
// for values between 0 and 1.
inline double pass_over_page(const double* page, std::uint64_t passes) {
  double a = 0, b = 0, c = 0, d = 0;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < kDoublesPerPage; i += 4) {
      for (int round = 0; round < 4; ++round) {  // 8 operations for each double
        a = a * 0.5 + page[i];
        b = b * 0.5 + page[i + 1];
        c = c * 0.5 + page[i + 2];
        d = d * 0.5 + page[i + 3];
      }
    }
  }
  return a + b + c + d;
}

// Operations a second of the calling thread, over this much time by the clock. A share of a core,
// such as a quota gives, is seen if `duration` is several of its periods.
double measure_core_speed(Nanos duration);

}  // namespace amasia::machine
