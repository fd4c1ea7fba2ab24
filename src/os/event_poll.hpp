// SPDX-License-Identifier: Apache-2.0
// Sleeping on any number of descriptors until one can be read or has ended (epoll).
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

// One thread at a time.
class EventPoll {
 public:
  static Result<EventPoll> make();
  // `tag` is what wait() says of it. Level-triggered: said again while there is something.
  Status add(int descriptor, std::uint64_t tag);
  // Edge-triggered: said once each time that something comes, so that nobody need take it away.
  Status add_edges(int descriptor, std::uint64_t tag);
  void remove(int descriptor) noexcept;
  // Appends the tags of those that are ready. Sleeps at most `timeout` (0: not at all, negative:
  // for ever); a signal handler ends it early.
  void wait(Nanos timeout, std::vector<std::uint64_t>* ready);
  // Can be polled itself: readable when one of its own is.
  int descriptor() const { return descriptor_.get(); }

 private:
  Status add(int descriptor, std::uint64_t tag, std::uint32_t events);
  Descriptor descriptor_;
};

}  // namespace amasia::os
