// SPDX-License-Identifier: Apache-2.0
#include "os/descriptor.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace amasia::os {
namespace {

bool is_ready(int descriptor, short event, int timeout_ms) {
  pollfd ready{descriptor, event, 0};
  return ::poll(&ready, 1, timeout_ms) > 0 && (ready.revents & event) != 0;
}

}  // namespace

void Descriptor::close() noexcept {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

Result<std::string> read_to_end(const Descriptor& file, std::size_t most) {
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t length = ::read(file.get(), part, sizeof part);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return base::errno_error(errno, "cannot read");
    if (length == 0) return text;
    if (most - text.size() < static_cast<std::size_t>(length)) {
      return base::errno_error(EFBIG, "cannot read");
    }
    text.append(part, static_cast<std::size_t>(length));
  }
}

void pass_on(int pipe, int to) noexcept {
  constexpr int kPatienceMs = 1000;
  char part[PIPE_BUF];  // a pipe that says that it can be written to takes so much without a wait
  while (is_ready(pipe, POLLIN, 0)) {
    const ssize_t length = ::read(pipe, part, sizeof part);
    if (length <= 0) return;
    for (ssize_t done = 0; done < length;) {
      if (!is_ready(to, POLLOUT, kPatienceMs)) return;
      const ssize_t written = ::write(to, part + done, static_cast<std::size_t>(length - done));
      if (written < 0 && errno != EINTR) return;
      if (written > 0) done += written;
    }
  }
}

}  // namespace amasia::os
