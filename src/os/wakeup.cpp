// SPDX-License-Identifier: Apache-2.0
#include "os/wakeup.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace amasia::os {

Result<Wakeup> Wakeup::make() {
  const int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) {
    const int reason = errno;
    return base::errno_error(reason, "cannot make an eventfd");
  }
  Wakeup wakeup;
  wakeup.descriptor_ = Descriptor(made);
  return wakeup;
}

void Wakeup::raise() noexcept {
  const std::uint64_t one = 1;
  // EAGAIN means that the flag has been raised 2^64 - 2 times: it is up.
  [[maybe_unused]] const auto written = ::write(descriptor_.get(), &one, sizeof one);
}

bool Wakeup::clear() noexcept {
  // An eventfd takes 8 of it; more than that lies in a pipe only if nobody has looked for long.
  std::uint64_t count[32] = {};
  return ::read(descriptor_.get(), count, sizeof count) > 0;
}

Result<RemoteWakeup> RemoteWakeup::make() {
  int ends[2] = {};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    const int reason = errno;
    return base::errno_error(reason, "cannot make a pipe");
  }
  RemoteWakeup wakeup;
  wakeup.waits_ = Descriptor(ends[0]);
  wakeup.raises_ = Descriptor(ends[1]);
  return wakeup;
}

void RemoteWakeup::raise() noexcept {
  // EAGAIN means that the pipe is full: the flag is up.
  [[maybe_unused]] const auto written = ::write(raises_.get(), "", 1);
}

unsigned wait_readable(const int* descriptors, unsigned count, Nanos timeout) noexcept {
  constexpr unsigned kMost = 8;
  AMASIA_CHECK(count <= kMost, "more descriptors than wait_readable has room for");
  pollfd polled[kMost];
  for (unsigned i = 0; i < count; ++i) polled[i] = {descriptors[i], POLLIN, 0};
  timespec limit{};
  if (timeout >= 0) {
    limit.tv_sec = static_cast<time_t>(timeout / base::kSecond);
    limit.tv_nsec = static_cast<long>(timeout % base::kSecond);
  }
  const int ready = ::ppoll(polled, count, timeout >= 0 ? &limit : nullptr, nullptr);
  unsigned mask = 0;
  if (ready <= 0) return mask;  // EINTR counts as a time-out: callers loop
  for (unsigned i = 0; i < count; ++i) {
    if (polled[i].revents != 0) mask |= 1U << i;
  }
  return mask;
}

}  // namespace amasia::os
