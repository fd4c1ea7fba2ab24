// SPDX-License-Identifier: Apache-2.0
// Sections that a thread runs away from its own stack.
//
// A thread of the program may have a stack that lies in memory whose faults another thread of this
// process resolves. If it held a lock that the resolving thread needs, and its own stack faulted,
// neither could go on. So whoever takes such a lock does it in a runtime section: on a stack of
// anonymous memory, with signals blocked (a handler of the program would touch the same memory) and
// without cancellation.
#pragma once

#include <type_traits>

namespace amasia::os {

// Declares that the calling thread's own stack is ordinary memory and that it runs no signal
// handlers of the program: its sections then cost nothing. For threads that the runtime started.
void declare_runtime_thread() noexcept;

// True in a runtime section, and always on a runtime thread.
bool is_in_runtime_section() noexcept;

// Runs `function(argument)` in a runtime section; nested sections are one. `function` must not
// throw or call anything that leaves it by longjmp. The stack is of kRuntimeStackSize bytes.
void run_in_runtime_section(void (*function)(void*), void* argument) noexcept;
inline constexpr unsigned long kRuntimeStackSize = 512 * 1024;

template <typename Function>
void in_runtime_section(Function&& function) noexcept {
  using Body = std::remove_reference_t<Function>;
  run_in_runtime_section([](void* body) { (*static_cast<Body*>(body))(); }, &function);
}

}  // namespace amasia::os
