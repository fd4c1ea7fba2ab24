// SPDX-License-Identifier: Apache-2.0
// A flag that a thread can wait for in poll(2) (an eventfd).
#pragma once

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

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

// Sleeps until one of the descriptors can be read or `timeout` is over (negative: for ever).
// Entries of -1 are ignored; for the others, bit i of the result says that descriptor i is ready.
unsigned wait_readable(const int* descriptors, unsigned count, Nanos timeout) noexcept;

}  // namespace amasia::os
