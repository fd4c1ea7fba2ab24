// SPDX-License-Identifier: Apache-2.0
#include "os/code_trap.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "os/syscall_trap.hpp"
#include "os/thread.hpp"

namespace amasia::os {
namespace {

std::atomic<Trapper*> trapper{nullptr};
struct sigaction before {};
std::once_flag once;

// Of the calling thread, while it is followed.
struct Followed {
  Follower* by = nullptr;
  Interrupter* then = nullptr;
};
thread_local Followed followed;

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

// A thread that is not followed any more may have had the flag on its stack, and back from there.
void on_step(const InterruptedThread& thread) {
  thread.set_single_step(false);
  if (followed.by == nullptr) return;
  const Follower::Next next = followed.by->follow(thread);
  if (next == Follower::Next::kFollow) return thread.set_single_step(true);
  Interrupter* const then = std::exchange(followed, {}).then;
  // Heard once this handler has returned, before the next instruction; not where the program has
  // taken the signal meanwhile: who waits for the thread to be stopped does not wait for ever.
  if (next == Follower::Next::kInterrupt) (void)interrupt_thread(current_thread_id(), *then);
}

void on_trap(int number, siginfo_t* information, void* context) {
  const int error = errno;
  if (information->si_code == TRAP_TRACE) {
    on_step(InterruptedThread(context));
    errno = error;
    return;
  }
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // A breakpoint is one byte, and the processor is behind it.
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]) - 1;
  const bool by_processor = information->si_code > 0;
  std::uintptr_t next = 0;
  Trapper* const by = trapper.load(std::memory_order_acquire);
  if (by_processor && by != nullptr) {
    next = by->trapped(at, static_cast<std::uint64_t>(registers[REG_EFL]));
  }
  if (next != 0) {
    registers[REG_RIP] = static_cast<greg_t>(next);
  } else {
    pass_on(number, information, context);
  }
  errno = error;
}

Status install_handler() {
  Status status = base::ok();
  std::call_once(once, [&status] {
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigfillset(&action.sa_mask);
    const bool good =
        ::sigaction(SIGTRAP, nullptr, &before) == 0 && ::sigaction(SIGTRAP, &action, nullptr) == 0;
    if (!good) status = base::errno_error(errno, "cannot catch SIGTRAP");
  });
  return status;
}

}  // namespace

Status catch_traps(Trapper& by) {
  Trapper* none = nullptr;
  if (!trapper.compare_exchange_strong(none, &by, std::memory_order_acq_rel)) {
    return none == &by ? base::ok() : Status(base::Error{"traps are caught already", 0});
  }
  return install_handler();
}

Status catch_steps() { return install_handler(); }

bool follow_thread(const InterruptedThread& thread, Follower& by, Interrupter& then) noexcept {
  if (!catches_traps() || thread.is_at_system_call()) return false;
  followed = {&by, &then};
  thread.set_single_step(true);
  return true;
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
