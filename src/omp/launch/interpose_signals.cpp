// SPDX-License-Identifier: Apache-2.0
// SIGSYS is how caught system calls reach us (delegate); a program that wants to report it as a
// fatal signal, as Fortran's library does for all of them at its start, is told that it may. Nor is
// it ever blocked, as SIGTRAP is not (os/code_trap): the kernel ends a process that comes to one of
// these and has blocked it.
// Signals that the program sends to itself end it on whichever node it does.
#include <signal.h>
#include <unistd.h>

#include "omp/launch/node_process.hpp"
#include "omp/launch/process.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

bool is_ours(int number) { return number == SIGSYS && process.catches_calls; }

// Programs that block all signals mean those that come from elsewhere.
sigset_t blockable(const sigset_t& signals) {
  sigset_t rest = signals;
  sigdelset(&rest, SIGSYS);
  sigdelset(&rest, SIGTRAP);
  return rest;
}

using SetMask = Real<int(int, const sigset_t*, sigset_t*)>;

int set_mask(SetMask& real, int how, const sigset_t* signals, sigset_t* before) {
  if (signals == nullptr || how == SIG_UNBLOCK) return real(how, signals, before);
  const sigset_t rest = blockable(*signals);
  return real(how, &rest, before);
}

void note_own_signal(int number) noexcept {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  if (node == nullptr || process.space.self() == base::kOrigin || number <= 0) return;
  struct sigaction action {};
  const bool known = sigaction(number, nullptr, &action) == 0;
  if (known && action.sa_handler == SIG_DFL) node->note_own_signal(number);
}

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT int sigaction(int number, const struct sigaction* action,
                            struct sigaction* previous) noexcept {
  static constinit Real<int(int, const struct sigaction*, struct sigaction*)> real{"sigaction"};
  if (action == nullptr) return real(number, action, previous);
  if (is_ours(number)) {
    if (previous != nullptr) *previous = {};
    return 0;
  }
  struct sigaction allowed = *action;
  allowed.sa_mask = blockable(action->sa_mask);
  return real(number, &allowed, previous);
}

AMASIA_EXPORT int sigprocmask(int how, const sigset_t* signals, sigset_t* before) noexcept {
  static constinit SetMask real{"sigprocmask"};
  return set_mask(real, how, signals, before);
}

AMASIA_EXPORT int pthread_sigmask(int how, const sigset_t* signals, sigset_t* before) noexcept {
  static constinit SetMask real{"pthread_sigmask"};
  return set_mask(real, how, signals, before);
}

AMASIA_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  static constinit Real<sighandler_t(int, sighandler_t)> real{"signal"};
  return is_ours(number) ? SIG_DFL : real(number, handler);
}

// An abort is seen as a system call, since the C library makes it inside itself (delegate).
AMASIA_EXPORT int raise(int number) noexcept {
  static constinit Real<int(int)> real{"raise"};
  note_own_signal(number);
  return real(number);
}

AMASIA_EXPORT int kill(pid_t to, int number) noexcept {
  static constinit Real<int(pid_t, int)> real{"kill"};
  if (to == getpid()) note_own_signal(number);
  return real(to, number);
}
