// SPDX-License-Identifier: Apache-2.0
// Running a function on another stack than the thread's own. The thread control block stays where
// it is: only the stack pointer moves, so thread-local variables, pthread_self and thread exit work
// as before (EVIDENCE.md 1: a control block in managed memory can lose the kernel's final store).
#pragma once

namespace amasia::omp {

// Calls `function(argument)` with the stack pointer at `stack_top` (rounded down to 16 bytes; the
// highest address of the stack, exclusive) and returns when it returns, on the old stack. Any
// thread; nothing is saved beside the callee-saved registers. Unwinding works through it: an
// exception thrown by `function` propagates to the caller, backtraces show both stacks, and
// longjmp to a frame of the old stack simply leaves the new one.
extern "C" void amasia_call_on_stack(void* stack_top, void (*function)(void*), void* argument);

inline void call_on_stack(void* stack_top, void (*function)(void*), void* argument) {
  amasia_call_on_stack(stack_top, function, argument);
}

}  // namespace amasia::omp
