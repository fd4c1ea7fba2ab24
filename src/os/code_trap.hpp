// SPDX-License-Identifier: Apache-2.0
// Traps in the code of this process: an instruction is replaced by a breakpoint, and who comes
// there does something else in its place. And threads that are followed, instruction by
// instruction, to where they may be stopped. x86-64. A debugger that stops there has to be told to
// go on with the signal.
#pragma once

#include <cstdint>

#include "base/base.hpp"
#include "os/interruption.hpp"

namespace amasia::os {

// Whose traps they are.
class Trapper {
 public:
  // Called on the thread that came to the trap at `at`, on its alternate stack if it has one, with
  // signals blocked and errno kept. Returns where the thread goes on, with all registers as they
  // were; 0: there is no such trap. The thread was in code that any other thread may be in, too:
  // what is called has to be safe in signal handlers.
  virtual std::uintptr_t trapped(std::uintptr_t at, std::uint64_t flags) noexcept = 0;

 protected:
  ~Trapper() = default;
};

// Of all threads, once, for as long as the process lives. A breakpoint that is none of ours goes to
// the handler that was there before, or ends the process as it would have.
Status catch_traps(Trapper& by);
// Whether the program has not taken SIGTRAP for itself since.
bool catches_traps() noexcept;

// Makes the byte at `at`, the first of an instruction, a breakpoint, or what it was; threads may
// be there, and may still come to a trap that has just been taken away. 2 us; false: the system
// lets nobody change code. The caller keeps what was there.
bool write_code(std::uintptr_t at, std::uint8_t byte) noexcept;
inline constexpr std::uint8_t kBreakpoint = 0xcc;

// Whoever follows a thread.
class Follower {
 public:
  enum class Next : std::uint8_t { kFollow, kInterrupt, kLetGo };
  // Called before each of its instructions, some us, on the thread, as trapped() is. It must not be
  // followed into a system call, in which SIGTRAP may be blocked: that ends the process.
  virtual Next follow(const InterruptedThread& thread) noexcept = 0;

 protected:
  ~Follower() = default;
};

// Of all threads, before the first one is followed; again does nothing.
Status catch_steps();
// For an Interrupter, of the thread that it has interrupted: once the handler has returned the
// thread is followed, until it is let go or interrupted by `then` where it is. False: the program
// has taken SIGTRAP for itself, or the thread is about to make a system call.
bool follow_thread(const InterruptedThread& thread, Follower& by, Interrupter& then) noexcept;

}  // namespace amasia::os
