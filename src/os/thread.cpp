// SPDX-License-Identifier: Apache-2.0
#include "os/thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace amasia::os {
namespace {

// The kernel's signal set: 64 bits, signal n is bit n-1. glibc's sigset_t is larger, and its calls
// leave its own two signals alone.
constexpr std::size_t kKernelSetSize = 8;
static_assert(sizeof(unsigned long) == kKernelSetSize);

unsigned long change_signals(int how, unsigned long set) {
  unsigned long old = 0;
  ::syscall(SYS_rt_sigprocmask, how, &set, &old, kKernelSetSize);
  return old;
}

struct Start {
  void (*body)(void*);
  void* argument;
};

void* run_thread(void* start) {
  const Start copy = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
  copy.body(copy.argument);
  return nullptr;
}

}  // namespace

Result<Thread> Thread::start(void (*body)(void*), void* argument) {
  auto start = std::make_unique<Start>(Start{body, argument});
  const unsigned long saved = block_signals();  // inherited by the new thread
  pthread_t handle{};
  const int reason = ::pthread_create(&handle, nullptr, run_thread, start.get());
  restore_signals(saved);
  if (reason != 0) return base::errno_error(reason, "cannot start a thread of the runtime");
  static_cast<void>(start.release());  // the thread's now
  Thread thread;
  thread.handle_ = handle;
  thread.running_ = true;
  return thread;
}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    join();
    handle_ = other.handle_;
    running_ = std::exchange(other.running_, false);
  }
  return *this;
}

void Thread::join() noexcept {
  if (std::exchange(running_, false)) ::pthread_join(handle_, nullptr);
}

int current_thread_id() noexcept { return static_cast<int>(::syscall(SYS_gettid)); }

void set_thread_name(const char* name) noexcept { ::prctl(PR_SET_NAME, name, 0, 0, 0); }

BatchScope::BatchScope() noexcept {
  const sched_param none{};
  changed_ = ::sched_getscheduler(0) == SCHED_OTHER &&
             ::sched_setscheduler(0, SCHED_BATCH, &none) == 0;
}

BatchScope::~BatchScope() {
  const sched_param none{};
  if (changed_) ::sched_setscheduler(0, SCHED_OTHER, &none);
}

unsigned allowed_core_count() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

Status pin_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    const int reason = errno;
    return base::errno_error(reason, fmt::format("cannot pin a thread to core {}", core));
  }
  return base::ok();
}

ServicePriority raise_priority() noexcept {
  sched_param parameters{};
  parameters.sched_priority = 1;
  // Children of a fork must not inherit it: the program's own processes are ordinary ones.
  if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0) {
    return ServicePriority::kFifo;
  }
  const int thread = current_thread_id();
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), -20) == 0) {
    return ServicePriority::kNice;
  }
  return ServicePriority::kOrdinary;
}

void use_precise_timers() noexcept { ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

int current_core() noexcept { return ::sched_getcpu(); }
void yield_core() noexcept { ::sched_yield(); }

unsigned long block_signals() noexcept {
  const auto bit = [](int signal) { return 1UL << (signal - 1); };
  const unsigned long own_faults = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGFPE) |
                                   bit(SIGTRAP) | bit(SIGABRT) | bit(SIGSYS);
  return change_signals(SIG_BLOCK, ~own_faults);
}

void restore_signals(unsigned long saved) noexcept { change_signals(SIG_SETMASK, saved); }

}  // namespace amasia::os
