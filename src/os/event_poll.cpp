// SPDX-License-Identifier: Apache-2.0
#include "os/event_poll.hpp"

#include <sys/epoll.h>

#include <cerrno>

namespace amasia::os {

Result<EventPoll> EventPoll::make() {
  const int made = ::epoll_create1(EPOLL_CLOEXEC);
  if (made < 0) return base::errno_error(errno, "cannot make an epoll descriptor");
  EventPoll poll;
  poll.descriptor_ = Descriptor(made);
  return poll;
}

// Ends and errors are always told.
Status EventPoll::add(int descriptor, std::uint64_t tag) { return add(descriptor, tag, EPOLLIN); }

Status EventPoll::add_edges(int descriptor, std::uint64_t tag) {
  return add(descriptor, tag, EPOLLIN | EPOLLET);
}

Status EventPoll::add(int descriptor, std::uint64_t tag, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(descriptor_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    return base::errno_error(errno, "cannot wait for a descriptor");
  }
  return base::ok();
}

void EventPoll::remove(int descriptor) noexcept {
  ::epoll_ctl(descriptor_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void EventPoll::wait(Nanos timeout, std::vector<std::uint64_t>* ready) {
  constexpr int kMost = 64;
  epoll_event events[kMost];
  // Rounded up, so that a caller that waits for a time does not spin until it has come.
  const Nanos milliseconds =
      timeout < 0 ? -1 : std::min<Nanos>((timeout + base::kMillisecond - 1) / base::kMillisecond,
                                         1'000'000);
  const int count =
      ::epoll_wait(descriptor_.get(), events, kMost, static_cast<int>(milliseconds));
  for (int i = 0; i < count; ++i) ready->push_back(events[i].data.u64);
}

}  // namespace amasia::os
