// SPDX-License-Identifier: Apache-2.0
// For tests that wait for another thread.
#pragma once

#include "base/base.hpp"
#include "os/clock.hpp"
#include "os/thread.hpp"

namespace amasia::os {

// What has not come by then does not come: the test ends there, with the threads that it has.
template <typename Condition>
void await(Condition comes) {
  const Nanos deadline = monotonic_now() + 60 * base::kSecond;
  while (!comes()) {
    AMASIA_CHECK(monotonic_now() < deadline, "it comes within a minute");
    yield_core();
  }
}

}  // namespace amasia::os
