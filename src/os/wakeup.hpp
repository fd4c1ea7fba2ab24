// SPDX-License-Identifier: Apache-2.0
// Flags that a thread can wait for in poll(2).
#pragma once

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

// An eventfd; or the end to wait at of a RemoteWakeup.
class Wakeup {
 public:
  Wakeup() = default;
  static Result<Wakeup> make();
  // One that another process has made, and passed on.
  explicit Wakeup(Descriptor made) : descriptor_(std::move(made)) {}
  int descriptor() const { return descriptor_.get(); }
  // Any thread, also in a signal handler; does not block.
  void raise() noexcept;
  // Lowers the flag; whether it was raised.
  bool clear() noexcept;

 private:
  Descriptor descriptor_;
};

// For processes that do not trust each other: nothing that the one who waits does with its end
// makes raise() block (an eventfd's flags and count belong to both).
class RemoteWakeup {
 public:
  RemoteWakeup() = default;
  static Result<RemoteWakeup> make();
  // To be passed to the process that waits, for a Wakeup there.
  int waiting_end() const { return waits_.get(); }
  // Any thread; does not block.
  void raise() noexcept;

 private:
  // A pipe, whose ends have flags of their own. `waits_` stays open here, so that writing never
  // meets a pipe without readers, which would be a signal.
  Descriptor waits_, raises_;
};

// Sleeps until one of the descriptors can be read or `timeout` is over (negative: for ever).
// Entries of -1 are ignored; for the others, bit i of the result says that descriptor i is ready.
unsigned wait_readable(const int* descriptors, unsigned count, Nanos timeout) noexcept;

}  // namespace amasia::os
