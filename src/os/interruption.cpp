// SPDX-License-Identifier: Apache-2.0
#include "os/interruption.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "os/syscall_trap.hpp"

namespace amasia::os {
namespace {

std::once_flag once;
struct sigaction before {};

void on_signal(int number, siginfo_t* information, void* context) {
  const int error = errno;
  if (information->si_code == SI_QUEUE && information->si_pid == ::getpid()) {
    static_cast<Interrupter*>(information->si_value.sival_ptr)
        ->interrupted(InterruptedThread(context));
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, information, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
  errno = error;
}

class AlternateStack {
 public:
  ~AlternateStack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    ::munmap(memory_, kSize);
  }
  Status have() {
    if (memory_ != nullptr) return base::ok();
    stack_t stack{};
    if (::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0) {
      return base::ok();
    }
    void* const memory =
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return base::errno_error(errno, "no memory for an alternate stack");
    stack = {};
    stack.ss_sp = memory;
    stack.ss_size = kSize;
    if (::sigaltstack(&stack, nullptr) != 0) {
      const Status refused = base::errno_error(errno, "cannot set an alternate stack");
      ::munmap(memory, kSize);
      return refused;
    }
    memory_ = memory;
    return base::ok();
  }

 private:
  static constexpr std::size_t kSize = 256 * base::kKiB;
  void* memory_ = nullptr;
};

}  // namespace

Status catch_interruptions() {
  Status status = base::ok();
  std::call_once(once, [&status] {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    const bool good =
        ::sigaction(kInterruption, nullptr, &before) == 0 &&
        ::sigaction(kInterruption, &action, nullptr) == 0;
    if (!good) status = base::errno_error(errno, "cannot catch SIGURG");
  });
  return status;
}

bool interrupt_thread(int thread_id, Interrupter& by) noexcept {
  struct sigaction now {};
  const bool is_ours = ::sigaction(kInterruption, nullptr, &now) == 0 &&
                       (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_signal;
  if (!is_ours) return false;
  siginfo_t information{};
  information.si_signo = kInterruption;
  information.si_code = SI_QUEUE;
  information.si_pid = ::getpid();
  information.si_uid = ::getuid();
  information.si_value.sival_ptr = &by;
  return make_uncaught_call(
             SYS_rt_tgsigqueueinfo,
             {static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(thread_id),
              kInterruption, reinterpret_cast<std::uint64_t>(&information)}) == 0;
}

ThreadActivity thread_activity(int thread_id) noexcept {
  std::array<char, 64> text{};
  *fmt::format_to_n(text.data(), text.size() - 1, "/proc/self/task/{}/syscall", thread_id).out = 0;
  const long file = make_uncaught_call(
      SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD),
                   reinterpret_cast<std::uint64_t>(text.data()), O_RDONLY | O_CLOEXEC});
  if (file < 0) return ThreadActivity::kInSystemCall;
  const auto descriptor = static_cast<std::uint64_t>(file);
  const long read = make_uncaught_call(
      SYS_read, {descriptor, reinterpret_cast<std::uint64_t>(text.data()), text.size() - 1});
  make_uncaught_call(SYS_close, {descriptor});
  if (read <= 0) return ThreadActivity::kInSystemCall;
  text[static_cast<std::size_t>(read)] = 0;
  // "running", or the call's number, which is -1 where it waits for something else.
  if (std::strncmp(text.data(), "running", 7) == 0) return ThreadActivity::kRuns;
  return std::strncmp(text.data(), "-1 ", 3) == 0 ? ThreadActivity::kWaitsForPage
                                                  : ThreadActivity::kInSystemCall;
}

void let_interruptions_through() noexcept {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, kInterruption);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

Status have_alternate_stack() {
  thread_local AlternateStack stack;
  return stack.have();
}

}  // namespace amasia::os
