// SPDX-License-Identifier: Apache-2.0
// How much of its CPU time a thread spins: looks at memory until another thread writes it. That is
// waiting, which nobody has to do where all threads are on one node, but the kernel counts it as
// computing. So the thread is interrupted now and then, while it runs; where it is in such a loop
// (code/spin_loop), what it has used since the last time counts as spinning.
//
// field        | written by              | read by     | ordered by
// code_, last_ | the thread              | the thread  | –
// spun_        | the thread              | any         | relaxed: a measure
#pragma once

#include <atomic>

#include "base/base.hpp"
#include "omp/code/program_code.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class SpinSample {
 public:
  // The calling thread, which executes the program's `function` next, begins. May ask the loader;
  // native stack.
  void begin(const void* function);
  // The same, interrupted; `waits`: it is in our code, for what others do. Safe in signal handlers.
  void note(const os::InterruptedThread& thread, bool waits) noexcept;
  // So far, ns.
  Nanos spun() const { return spun_.load(std::memory_order_relaxed); }

 private:
  ProgramCode code_;
  Nanos last_ = 0;  // its CPU time then
  std::atomic<Nanos> spun_{0};
};

}  // namespace amasia::omp
