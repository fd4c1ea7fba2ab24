// SPDX-License-Identifier: Apache-2.0
#include "os/socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.hpp"

namespace amasia::os {
namespace {

// Waits until `socket` is ready for `events` or the deadline passed; false in the latter case.
bool wait_ready(int socket, short events, Nanos deadline) {
  for (;;) {
    const Nanos left = deadline - monotonic_now();
    if (left <= 0) return false;
    const Nanos milliseconds = std::min<Nanos>(left / base::kMillisecond + 1, 60'000);
    pollfd polled{socket, events, 0};
    if (::poll(&polled, 1, static_cast<int>(milliseconds)) > 0) return true;
  }
}

Error time_out() { return Error{"no answer in time", ETIMEDOUT}; }

}  // namespace

Result<std::pair<Descriptor, Descriptor>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    const int reason = errno;
    return base::errno_error(reason, "cannot make a socket pair");
  }
  return std::pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

Status send_all(int socket, std::span<const std::byte> bytes, Nanos deadline) {
  while (!bytes.empty()) {
    std::size_t count = 0;
    switch (send_some(socket, bytes, &count)) {
      case Transfer::kSome:
        bytes = bytes.subspan(count);
        break;
      case Transfer::kWouldBlock:
        if (!wait_ready(socket, POLLOUT, deadline)) return time_out();
        break;
      case Transfer::kClosed:
        return Error{"the other end has closed the connection", EPIPE};
    }
  }
  return base::ok();
}

Status receive_all(int socket, std::span<std::byte> bytes, Nanos deadline) {
  while (!bytes.empty()) {
    std::size_t count = 0;
    switch (receive_some(socket, bytes, &count)) {
      case Transfer::kSome:
        bytes = bytes.subspan(count);
        break;
      case Transfer::kWouldBlock:
        if (!wait_ready(socket, POLLIN, deadline)) return time_out();
        break;
      case Transfer::kClosed:
        return Error{"the other end has closed the connection", EPIPE};
    }
  }
  return base::ok();
}

Transfer receive_some(int socket, std::span<std::byte> bytes, std::size_t* count) noexcept {
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  *count = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got > 0) return Transfer::kSome;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Transfer::kWouldBlock;
  return Transfer::kClosed;
}

Transfer send_some(int socket, std::span<const std::byte> bytes, std::size_t* count) noexcept {
  const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  *count = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (sent > 0) return Transfer::kSome;
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return Transfer::kWouldBlock;
  return Transfer::kClosed;
}

}  // namespace amasia::os
