// SPDX-License-Identifier: Apache-2.0
// Catches chosen system calls of all threads of this process, and lets the process answer them
// itself: seccomp with SECCOMP_RET_TRAP, and a SIGSYS handler that writes the
// result where the kernel would have. It sees the calls that the C library makes inside itself,
// which no interposed symbol does.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/base.hpp"

namespace amasia::os {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last byte
};

struct TrappedCall {
  long number = 0;
  std::array<std::uint64_t, 6> arguments{};
  // The handler's answer: what the kernel would return, -errno for a failure.
  long result = 0;
};

// Runs on the calling thread, in a SIGSYS handler that leaves all signals unblocked but that for
// interruptions (interruption.hpp), which wait until the call has ended; the call was
// synchronous, so locks are as safe as they are around any system call. Must itself make no call
// that the rules catch.
using TrapHandler = void (*)(TrappedCall&) noexcept;

// A call that is caught when its descriptor argument (the first one; the fifth of mmap) lies within
// first … last, or is AT_FDCWD. Of tgkill it is the signal.
struct DescriptorCall {
  int number = 0;
  int first = 0;
  int last = 0;
};

struct TrapRules {
  // futex(2) on an address in one of these is caught, whatever its operation.
  std::span<const AddressRange> futex_words;
  std::span<const DescriptorCall> descriptor_calls;
  // These calls are always caught.
  std::span<const int> calls;
};

// Installs handler and filter for all threads, those that are there already among them: an OpenMP
// runtime may have started some before main. Only calls that this process's C library makes are
// looked at. The filter outlives exec, so that in what the thread executes it is without effect as
// long as the C library lies elsewhere there: addresses must be randomised, or nothing executed.
// Fails with errno where seccomp is refused; sets no_new_privs if it must. One handler a process:
// another one is a bug.
Status install_syscall_trap(const TrapRules& rules, TrapHandler handler);

// Makes a system call that no filter of ours catches, since it does not come from the C library.
// Returns what the kernel does, -errno for a failure. Any thread, any signal context.
long make_uncaught_call(long number, const std::array<std::uint64_t, 6>& arguments) noexcept;

}  // namespace amasia::os
