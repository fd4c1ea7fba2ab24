// SPDX-License-Identifier: Apache-2.0
// Whether compiled code asks where its thread's own memory is. A thread-local variable of x86-64 is
// an operand at a fixed distance from the thread pointer, which is the base of FS and the word at
// %fs:0, too (ELF Handling For Thread-Local Storage, 4.4.6). So code that never reads that word
// uses variables, but has no address of one anywhere.
#pragma once

#include <span>

#include "omp/code/program_code.hpp"

namespace amasia::omp {

// True where in doubt: all bytes are looked at, wherever instructions begin. Functions of the
// loader, as __tls_get_addr, are the caller's to exclude. Pure; some 0.1 ns a byte.
bool may_read_thread_pointer(std::span<const Byte> code);

}  // namespace amasia::omp
