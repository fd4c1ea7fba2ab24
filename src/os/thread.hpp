// SPDX-License-Identifier: Apache-2.0
// Threads of the runtime, and properties of the calling thread.
#pragma once

#include <cstdint>
#include <utility>

#include "base/base.hpp"

namespace amasia::os {

int current_thread_id() noexcept;
void set_thread_name(const char* name) noexcept;  // cut after 15 characters

// A joinable thread that runs `body(argument)` with all signals blocked, so that the program's
// handlers never run on it. Its stack is the C library's.
class Thread {
 public:
  Thread() = default;
  static Result<Thread> start(void (*body)(void*), void* argument);
  Thread(Thread&& other) noexcept
      : handle_(other.handle_), running_(std::exchange(other.running_, false)) {}
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }
  // Waits for the end of the thread; nothing if it was joined before.
  void join() noexcept;
  bool joinable() const { return running_; }

 private:
  unsigned long handle_ = 0;
  bool running_ = false;
};

// How many cores this process may use.
unsigned allowed_core_count() noexcept;
Status pin_to_core(int core);

enum class ServicePriority { kFifo, kNice, kOrdinary };
// Raises the thread above ordinary ones as far as the system allows and says how far: SCHED_FIFO,
// else nice -20, else as before.
ServicePriority raise_priority() noexcept;

// Threads that the calling one starts while this lives take no core from who runs on it when they
// are woken (SCHED_BATCH), for threads of a driver that compute. Where the caller does not run at
// ordinary priority, or the system refuses, they are as they would be.
class BatchScope {
 public:
  BatchScope() noexcept;
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

 private:
  bool changed_ = false;
};

// Makes timed waits of the calling thread end within about a microsecond of their time, instead of
// the usual 50.
void use_precise_timers() noexcept;

// Between two looks at memory that another core is about to write.
inline void pause_core() noexcept { __builtin_ia32_pause(); }
// The line comes to this core meanwhile, and from the core that has it, if one does: who only reads
// it would get a copy, and the first write would fetch it again. Any address.
inline void prefetch_to_write(const void* address) noexcept {
#ifdef __x86_64__
  // The compilers make a prefetch to read of it where not all such machines have the other one;
  // those without do nothing.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}
// The core that the caller runs on, which may be another at once; below 0: not known.
int current_core() noexcept;
// Gives the core to another thread that is ready to run, if there is one.
void yield_core() noexcept;

// Blocks all signals but those that report a fault of the thread itself, or a system call that is
// caught (syscall_trap.hpp), for which a blocked one would be the end; returns the set to give
// back to restore_signals.
unsigned long block_signals() noexcept;
void restore_signals(unsigned long saved) noexcept;

}  // namespace amasia::os
