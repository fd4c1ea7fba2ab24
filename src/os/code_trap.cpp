// SPDX-License-Identifier: Apache-2.0
#include "os/code_trap.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "os/syscall_trap.hpp"

namespace amasia::os {
namespace {

std::atomic<Trapper*> trapper{nullptr};
struct sigaction before {};

void pass_on(int number, siginfo_t* information, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, information, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    // Blocked here, so it ends the process once this handler has returned.
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
    ::raise(number);
  }
}

void on_trap(int number, siginfo_t* information, void* context) {
  const int error = errno;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // A breakpoint is one byte, and the processor is behind it.
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]) - 1;
  const bool by_processor = information->si_code > 0;
  std::uintptr_t next = 0;
  if (by_processor) {
    next = trapper.load(std::memory_order_acquire)
               ->trapped(at, static_cast<std::uint64_t>(registers[REG_EFL]));
  }
  if (next != 0) {
    registers[REG_RIP] = static_cast<greg_t>(next);
  } else {
    pass_on(number, information, context);
  }
  errno = error;
}

}  // namespace

Status catch_traps(Trapper& by) {
  Trapper* none = nullptr;
  if (!trapper.compare_exchange_strong(none, &by, std::memory_order_acq_rel)) {
    return none == &by ? base::ok() : Status(base::Error{"traps are caught already", 0});
  }
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(SIGTRAP, nullptr, &before) != 0 || ::sigaction(SIGTRAP, &action, nullptr) != 0) {
    return base::errno_error(errno, "cannot catch SIGTRAP");
  }
  return base::ok();
}

bool catches_traps() noexcept {
  struct sigaction now {};
  return ::sigaction(SIGTRAP, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == on_trap;
}

bool write_code(std::uintptr_t at, std::uint8_t byte) noexcept {
  // As a debugger does: code is not writable where it lies, and stays so. Opened each time, since
  // programs may close what they have not opened.
  const long memory = make_uncaught_call(
      SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD),
                   reinterpret_cast<std::uint64_t>("/proc/self/mem"), O_RDWR | O_CLOEXEC});
  if (memory < 0) return false;
  const auto descriptor = static_cast<std::uint64_t>(memory);
  const long written = make_uncaught_call(
      SYS_pwrite64, {descriptor, reinterpret_cast<std::uint64_t>(&byte), 1, at});
  make_uncaught_call(SYS_close, {descriptor});
  return written == 1;
}

}  // namespace amasia::os
