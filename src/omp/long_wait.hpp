// SPDX-License-Identifier: Apache-2.0
// Tells of a wait that takes long: the launcher after a moment, the log after the watchdog's time.
#pragma once

#include <cstdint>
#include <string>

#include "base/base.hpp"
#include "omp/services.hpp"

namespace amasia::omp {

// What a thread waits for, for people: "`what` at 0x7e90… of node 2".
struct Awaited {
  const char* what = nullptr;  // lives as long as the wait; nullptr: idle, nothing is told
  int node = -1;               // that it waits for; -1: none, or several
  std::uint64_t address = 0;   // 0: none

  std::string text() const;
};

// One thread's wait, from construction to destruction. On a native stack.
class LongWait {
 public:
  // Until then a wait is nobody's concern. The launcher is told again as often, since there is one
  // place for all waiting threads of a node.
  static constexpr Nanos kMoment = 100 * base::kMillisecond;

  // `watchdog` 0: nothing goes to the log.
  LongWait(Services& services, NodeId self, Nanos watchdog, const Awaited& awaited, Nanos now);
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // Tells what is due at `now`. Returns how long the caller may sleep before it calls again; -1:
  // for ever.
  Nanos tell(Nanos now);

 private:
  Services& services_;
  const NodeId self_;
  const Nanos watchdog_;
  const Awaited awaited_;
  const Nanos began_;
  Nanos show_at_;
  Nanos complain_at_;
  bool shown_ = false;
};

}  // namespace amasia::omp
