// SPDX-License-Identifier: Apache-2.0
// A point in time that a thread can wait for in poll(2) (a timerfd), and several descriptors that
// are waited for as one (an epoll).
#pragma once

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

class Alarm {
 public:
  static Result<Alarm> make();
  // Readable from `time` (monotonic) on, until it is set again or stopped. Any thread.
  void set(Nanos time) noexcept;
  void stop() noexcept;
  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

// A descriptor that is readable while one of the two is. It does not own them.
Result<Descriptor> join_descriptors(int one, int other);
// Whether one of them can be read now: half of what it costs to ask for each (80 ns against 170).
bool is_either_readable(const Descriptor& joined) noexcept;

}  // namespace amasia::os
