// SPDX-License-Identifier: Apache-2.0
#include "os/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/base.hpp"

namespace amasia::os {

void fill_random(std::span<std::byte> bytes) noexcept {
  // Up to 256 bytes getrandom is all or nothing, and only a signal before the pool is ready can
  // make it nothing.
  AMASIA_CHECK(bytes.size() <= 256, "getrandom may give less than asked for");
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  AMASIA_CHECK(got == static_cast<ssize_t>(bytes.size()), "secrets need random bytes");
}

}  // namespace amasia::os
