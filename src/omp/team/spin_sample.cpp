// SPDX-License-Identifier: Apache-2.0
#include "omp/team/spin_sample.hpp"

#include "omp/code/spin_loop.hpp"

namespace amasia::omp {

void SpinSample::begin(const void* function) {
  const auto* const code = static_cast<const Byte*>(function);
  if (!code_.holds(code)) code_ = ProgramCode::around(code);
  spun_.store(0, std::memory_order_relaxed);
  last_ = os::own_cpu_time();
}

void SpinSample::note(const os::InterruptedThread& thread, bool waits) noexcept {
  const Nanos now = os::own_cpu_time();
  const auto* const at = reinterpret_cast<const Byte*>(thread.instruction());
  if (waits || spin_loop_at(at, code_)) {
    spun_.store(spun() + (now - last_), std::memory_order_relaxed);
  }
  last_ = now;
}

}  // namespace amasia::omp
