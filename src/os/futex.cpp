// SPDX-License-Identifier: Apache-2.0
#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace amasia::os {
namespace {

bool wait(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t expected,
          Nanos timeout) noexcept {
  timespec relative{timeout / base::kSecond, timeout % base::kSecond};
  const long result =
      syscall(SYS_futex, &word, operation, expected, timeout < 0 ? nullptr : &relative, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

}  // namespace

bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                Nanos timeout) noexcept {
  return wait(word, FUTEX_WAIT_PRIVATE, expected, timeout);
}

void futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

bool futex_wait_shared(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       Nanos timeout) noexcept {
  return wait(word, FUTEX_WAIT, expected, timeout);
}

void futex_wake_shared(const std::atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace amasia::os
