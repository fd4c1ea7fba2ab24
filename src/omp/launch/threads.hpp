// SPDX-License-Identifier: Apache-2.0
// The threads of this process: which are the program's, and how it leaves without ceremony.
#pragma once

#include <pthread.h>

#include <span>

#include "base/base.hpp"

namespace amasia::omp {

// Blocks until all threads that the program and its OpenMP runtime started have ended.
void wait_for_program_threads() noexcept;

// The _exit of the kernel: no handler of ours is asked.
[[noreturn]] void real_exit_now(int status) noexcept;
// Starts `function(argument)` on a new thread that counts as one of the program's, as far as its
// stack and its allocations go; to be joined. `cores`: where it may run; none: where the caller
// may. Fails if the system has no thread to give.
[[nodiscard]] Status start_program_thread(pthread_t& thread, void* (*function)(void*),
                                          void* argument, std::span<const int> cores = {}) noexcept;
// The same, and waits for its end.
[[nodiscard]] Status run_on_program_thread(void (*function)(void*), void* argument) noexcept;

}  // namespace amasia::omp
