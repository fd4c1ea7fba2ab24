// SPDX-License-Identifier: Apache-2.0
// SIGSYS is how caught system calls reach us (delegate); a program that wants to report it as a
// fatal signal, as Fortran's library does for all of them at its start, is told that it may.
#include <csignal>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

bool is_ours(int number) { return number == SIGSYS && process.catches_calls; }

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT int sigaction(int number, const struct sigaction* action,
                            struct sigaction* previous) noexcept {
  static constinit Real<int(int, const struct sigaction*, struct sigaction*)> real{"sigaction"};
  if (!is_ours(number) || action == nullptr) return real(number, action, previous);
  if (previous != nullptr) *previous = {};
  return 0;
}

AMASIA_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  static constinit Real<sighandler_t(int, sighandler_t)> real{"signal"};
  return is_ours(number) ? SIG_DFL : real(number, handler);
}
