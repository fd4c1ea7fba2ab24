// SPDX-License-Identifier: Apache-2.0
// Where a thread stands, kept so that another one can go on from there: what the calling convention
// lets a function expect from the one that it calls. A call that keeps its state returns a second
// time, wherever that is restored: on the thread that kept it or, if the stack is memory that is
// the same there, on one of another node.
#pragma once

#include <cstdint>

namespace amasia::omp {

// Layout known to thread_state.S.
struct ThreadState {
  std::uint64_t stack_pointer = 0;  // the return address is there
  std::uint64_t rbx = 0, rbp = 0, r12 = 0, r13 = 0, r14 = 0, r15 = 0;
  std::uint32_t mxcsr = 0;
  std::uint32_t x87_control = 0;
};
static_assert(sizeof(ThreadState) == 64);

// The frame of a call whose end can be directed elsewhere, on the stack of what was called.
struct EntryFrame {
  std::uint64_t saved_rbp;
  std::uint64_t return_address;
};

extern "C" {
// As amasia_call_on_stack (stack_switch.hpp), but the state with which it would return to its
// caller is in `state` before.
void amasia_switch(void* stack_top, void (*function)(void*), void* argument, ThreadState* state);
// Lets the call that kept `state` return. Its stack must be as it was then.
[[noreturn]] void amasia_resume(const ThreadState* state);
// Calls function(first, second) on the caller's stack; *entry is the call's frame until it returns.
void amasia_enter(void* function, void* first, void* second, EntryFrame** entry);
// Not to be called: the return address of an entry frame whose saved rbp is the address of a state.
// Restores that.
void amasia_return_home();
}

// So that what was called returns to `state`, on the thread that it runs on then.
inline void direct_home(EntryFrame& entry, const ThreadState& state) {
  entry.saved_rbp = reinterpret_cast<std::uint64_t>(&state);
  entry.return_address = reinterpret_cast<std::uint64_t>(&amasia_return_home);
}

}  // namespace amasia::omp
