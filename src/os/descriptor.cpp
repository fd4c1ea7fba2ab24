// SPDX-License-Identifier: Apache-2.0
#include "os/descriptor.hpp"

#include <unistd.h>

#include <cerrno>

namespace amasia::os {

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

}  // namespace amasia::os
