// SPDX-License-Identifier: Apache-2.0
#include "machine/arithmetic.hpp"

#include <array>

#include "os/os.hpp"

namespace amasia::machine {

double measure_core_speed(Nanos duration) {
  AMASIA_CHECK(duration > 0, "a speed is measured over some time");
  constexpr std::uint64_t kPasses = 32;  // about 0.1 ms, so that the clock costs nothing
  std::array<double, kDoublesPerPage> page;
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<double>(i % 7) / 8;
  volatile double sink = pass_over_page(page.data(), 1);
  std::uint64_t passes = 0;
  const Nanos begin = os::monotonic_now();
  Nanos elapsed = 0;
  do {
    sink = pass_over_page(page.data(), kPasses);
    passes += kPasses;
    elapsed = os::monotonic_now() - begin;
  } while (elapsed < duration);
  static_cast<void>(sink);
  return static_cast<double>(passes) * kOpsPerPass * 1e9 / static_cast<double>(elapsed);
}

}  // namespace amasia::machine
