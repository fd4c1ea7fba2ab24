// SPDX-License-Identifier: Apache-2.0
#include "os/alarm.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace amasia::os {

Result<Alarm> Alarm::make() {
  Alarm alarm;
  alarm.descriptor_ = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!alarm.descriptor_.valid()) return base::errno_error(errno, "cannot make a timer");
  return alarm;
}

void Alarm::set(Nanos time) noexcept {
  time = std::max<Nanos>(time, 1);  // 0 would stop it
  const itimerspec when{{0, 0},
                        {static_cast<time_t>(time / base::kSecond),
                         static_cast<long>(time % base::kSecond)}};
  // Also forgets that it has gone off.
  ::timerfd_settime(descriptor_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Alarm::stop() noexcept {
  const itimerspec never{};
  ::timerfd_settime(descriptor_.get(), 0, &never, nullptr);
}

Result<Descriptor> join_descriptors(int one, int other) {
  Descriptor joined(::epoll_create1(EPOLL_CLOEXEC));
  if (!joined.valid()) return base::errno_error(errno, "cannot make an epoll");
  for (const int descriptor : {one, other}) {
    epoll_event event{EPOLLIN, {}};
    if (::epoll_ctl(joined.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      return base::errno_error(errno, "cannot wait for two descriptors as one");
    }
  }
  return joined;
}

bool is_either_readable(const Descriptor& joined) noexcept {
  epoll_event event;
  return ::epoll_wait(joined.get(), &event, 1, 0) > 0;
}

}  // namespace amasia::os
