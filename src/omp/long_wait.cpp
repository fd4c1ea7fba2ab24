// SPDX-License-Identifier: Apache-2.0
#include "omp/long_wait.hpp"

#include <algorithm>
#include <limits>

namespace amasia::omp {

std::string Awaited::text() const {
  std::string text = what;
  if (address != 0) text += fmt::format(" at {:#x}", address);
  if (node >= 0) text += fmt::format(" of node {}", node);
  return text;
}

LongWait::LongWait(Services& services, NodeId self, Nanos watchdog, const Awaited& awaited,
                   Nanos now)
    : services_(services),
      self_(self),
      watchdog_(watchdog),
      awaited_(awaited),
      began_(now),
      show_at_(now + kMoment),
      complain_at_(watchdog > 0 ? now + watchdog : std::numeric_limits<Nanos>::max()) {}

LongWait::~LongWait() {
  if (shown_) services_.show_wait({});
}

Nanos LongWait::tell(Nanos now) {
  if (awaited_.what == nullptr) return -1;
  if (now >= show_at_) {
    services_.show_wait(awaited_.text());
    shown_ = true;
    show_at_ = now + kMoment;
  }
  if (now >= complain_at_) {
    base::log_line(base::LogLevel::kWarning, "node {} has waited {} s for {}", self_.value,
                   (now - began_) / base::kSecond, awaited_.text());
    complain_at_ = now + watchdog_;
  }
  return std::min(show_at_, complain_at_) - now;
}

}  // namespace amasia::omp
