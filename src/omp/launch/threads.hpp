// SPDX-License-Identifier: Apache-2.0
// The threads of this process: which are the program's, and how it leaves without ceremony.
#pragma once

namespace amasia::omp {

// Blocks until all threads that the program and its OpenMP runtime started have ended.
void wait_for_program_threads() noexcept;

// The _exit of the kernel: no handler of ours is asked.
[[noreturn]] void real_exit_now(int status) noexcept;

}  // namespace amasia::omp
