// SPDX-License-Identifier: Apache-2.0
// Interrupting a thread of this process wherever it is, to look at what it does and perhaps to take
// that from it (interrupted_thread.hpp). By SIGURG, which programs ignore unless they use sockets'
// urgent data; those who do get theirs.
#pragma once

#include <signal.h>

#include "base/base.hpp"
#include "os/interrupted_thread.hpp"

namespace amasia::os {

inline constexpr int kInterruption = SIGURG;

// Whoever interrupts.
class Interrupter {
 public:
  // Called on the interrupted thread, on its alternate stack if it has one, with SIGURG blocked and
  // errno kept. Where the thread was it may have held any lock.
  virtual void interrupted(const InterruptedThread& thread) = 0;

 protected:
  ~Interrupter() = default;
};

// Of all threads, once before the first one; again does nothing. A signal that is none of ours goes
// to the handler that was there before, if one was.
Status catch_interruptions();

// Lets the thread call `by`, soon. A call that waits in the kernel ends with EINTR, unless it is
// one that goes on (signal(7)). False: there is no such thread, or the program has a handler for
// SIGURG of its own since. By any thread.
bool interrupt_thread(int thread_id, Interrupter& by) noexcept;

// What a thread does: computes, or would if it had a core; waits for a page; is in a system call,
// or that cannot be told. Some 10 us. Any thread.
enum class ThreadActivity { kRuns, kWaitsForPage, kInSystemCall };
ThreadActivity thread_activity(int thread_id) noexcept;

inline bool waits_in_system_call(int thread_id) noexcept {
  return thread_activity(thread_id) == ThreadActivity::kInSystemCall;
}

// The calling thread, which began where such signals wait, lets them through.
void let_interruptions_through() noexcept;

// A stack for the calling thread's signal handlers, until the thread ends. Nothing where it has
// one. On an error handlers run on the stack that the thread is on.
Status have_alternate_stack();

}  // namespace amasia::os
