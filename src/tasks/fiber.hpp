// SPDX-License-Identifier: Apache-2.0
// A stack with what runs on it, and switching between two of them (Boost.Context's assembly). What
// C++ keeps of a thread's exceptions moves with the stack, so that a fiber that stops inside of a
// catch block may go on with another thread. Tools that watch stacks are told of switches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace amasia::tasks {

class Fiber {
 public:
  // Never returns: it ends by switching away for good.
  using Entry = void (*)(void* argument);

  // Of the calling thread's own stack.
  Fiber() noexcept;
  // On `size` bytes from `low` on, which outlive it; entered at the first switch.
  Fiber(void* low, std::size_t size, Entry entry, void* argument) noexcept;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called on `this`; returns when something switches back, perhaps with another thread. Of the
  // caller's thread-local addresses none may be used again (a compiler keeps them over a call).
  void switch_to(Fiber& to) noexcept;

  // How many bytes are left below the caller's frame, which is on this fiber. A thread's own
  // stack: no limit known, a large number.
  std::size_t room() const noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return low_ == 0 ? SIZE_MAX : here - low_;
  }

 private:
  void* context_ = nullptr;  // where it stopped; of the one that runs, stale
  std::uintptr_t low_ = 0;
  std::size_t size_ = 0;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  void* thread_sanitizer_ = nullptr;   // its name for this stack
  void* address_sanitizer_ = nullptr;  // its shadow of a stack that stopped
  const void* asan_low_ = nullptr;     // the bounds that it was told of
  std::size_t asan_size_ = 0;
  friend struct FiberStart;
};

}  // namespace amasia::tasks
