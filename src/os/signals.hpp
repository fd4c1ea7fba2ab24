// SPDX-License-Identifier: Apache-2.0
// Signals as something to read, for a process with an event loop.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

struct ReceivedSignal {
  int number = 0;
  bool from_kernel = false;  // from the terminal (which tells its whole process group), not kill()
};

// Blocks the signals for this thread and those it starts, and makes them readable. To be opened
// before any other thread exists: one that does not block them would take them. Destruction gives
// this thread the mask that it had.
class SignalQueue {
 public:
  static Result<SignalQueue> open(std::initializer_list<int> signals);
  SignalQueue(SignalQueue&&) = default;
  SignalQueue& operator=(SignalQueue&&) = delete;
  ~SignalQueue();
  int descriptor() const { return descriptor_.get(); }
  // The next one, or nothing; never blocks.
  std::optional<ReceivedSignal> next();

 private:
  SignalQueue(Descriptor descriptor, const sigset_t& before)
      : descriptor_(std::move(descriptor)), before_(before) {}
  Descriptor descriptor_;
  sigset_t before_;
};

// Ends this process by the signal, as if it had never been caught, without a core dump. If the
// signal does not end processes, exits with 128 + signal, as shells do.
[[noreturn]] void end_by_signal(int signal);
// Stops this process by SIGTSTP, SIGTTIN, SIGTTOU or SIGSTOP, until someone continues it.
void stop_self(int signal);

}  // namespace amasia::os
