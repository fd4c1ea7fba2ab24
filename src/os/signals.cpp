// SPDX-License-Identifier: Apache-2.0
#include "os/signals.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace amasia::os {

Result<SignalQueue> SignalQueue::open(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  sigset_t before;
  if (::sigprocmask(SIG_BLOCK, &set, &before) != 0) {
    return base::errno_error(errno, "cannot block signals");
  }
  Descriptor made(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!made.valid()) return base::errno_error(errno, "cannot read signals");
  return SignalQueue(std::move(made), before);
}

SignalQueue::~SignalQueue() {
  if (descriptor_.valid()) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<ReceivedSignal> SignalQueue::next() {
  signalfd_siginfo info{};
  ssize_t got;
  do {
    got = ::read(descriptor_.get(), &info, sizeof info);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof info) return std::nullopt;
  return ReceivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

void end_by_signal(int signal) {
  // The program has dumped its own core; ours would replace it.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);  // where cores go to a program, the limit is not looked at
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::kill(::getpid(), signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::_exit(128 + signal);
}

void stop_self(int signal) {
  // By the signal itself, not by SIGSTOP, so that a shell is told the same as by the program.
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::kill(::getpid(), signal);
  ::sigprocmask(SIG_UNBLOCK, &one, &before);  // stops here
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace amasia::os
