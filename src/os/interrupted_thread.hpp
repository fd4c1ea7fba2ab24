// SPDX-License-Identifier: Apache-2.0
// What a thread was doing when a signal interrupted it, taken so that another thread goes on with
// it: one of this process, or of one that has the same code and, where the stack lies, the same
// memory. Of a thread that waits for a page (userfaultfd) the instruction is begun anew.
//
// The state is what the kernel puts on the stack for the handler, and takes back when it returns:
// general registers and, as the processor lays them out, all others. Not what a thread has of its
// own: signal mask, alternate stack, thread pointer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/base.hpp"

namespace amasia::os {

class InterruptedThread {
 public:
  // In a handler with SA_SIGINFO: from its third argument. Allocates nothing.
  explicit InterruptedThread(void* context) : context_(context) {}

  // Where it was, and on which stack.
  std::uintptr_t instruction() const;
  std::uintptr_t stack_pointer() const;
  // All general registers, these two among them. Of a thread that is twice where it was with the
  // same ones, nothing but memory that others write can be different.
  using Registers = std::array<std::uint64_t, 17>;
  Registers registers() const;
  // How many bytes the state has, up to 11 KiB (AMX), and the state. Any thread may call go_on()
  // with it, on a processor with the same extensions.
  std::size_t size() const;
  void keep(std::span<std::byte> state) const;
  // Whether what it does next is a system call.
  bool is_at_system_call() const;
  // Whether the processor stops it after its next instruction (code_trap.hpp).
  void set_single_step(bool on) const;
  // When the handler has returned the thread does not go on where it was, but calls
  // function(argument), which may not return, on a stack that begins below `stack_top` (16 bytes
  // aligned). Signals are blocked as they were before the interruption.
  void redirect(void (*function)(void*), void* argument, void* stack_top) const;

 private:
  void* context_;
};

// Which extensions of the processor such a state may have (XCR0): equal where states may go.
std::uint64_t register_sets() noexcept;

// Goes on with a state that was kept. The calling thread's own stack is given up below here.
// Undefined where `state` is none, or of another kind of processor.
[[noreturn]] void go_on(std::span<const std::byte> state);

}  // namespace amasia::os
