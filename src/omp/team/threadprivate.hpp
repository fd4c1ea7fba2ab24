// SPDX-License-Identifier: Apache-2.0
// Private copies of the threadprivate variables that a runtime, not the linker, keeps (flang; clang
// with -fnoopenmp-use-tls), on the nodes other than the origin. There the next runtime cannot be
// asked: it gives each process's first thread the original variable, which is the origin's.
#pragma once

#include <cstddef>

namespace amasia::omp {

// How copies of a class object are made and ended; any may be nullptr.
struct ThreadPrivateMethods {
  void* (*construct)(void* to) = nullptr;
  void* (*copy_construct)(void* to, void* from) = nullptr;
  void (*destroy)(void* object) = nullptr;
};

// Notes the methods of the variable at `original`; from static initialisers, before its first use.
void register_threadprivate(void* original, ThreadPrivateMethods methods);

// The calling thread's copy of the `size` bytes at `original`, made on first use: constructed, or
// with the value that the program's file gives it (the origin may have changed its own since).
// Destroyed with the thread. Ends the process if there is no memory.
void* threadprivate_copy(void* original, std::size_t size);

// The bytes that the loaded file has for [address, address + size): zeros where it has none, or
// where no loaded object lies. True if an object has the address.
bool read_initial_image(const void* address, std::size_t size, void* to);

}  // namespace amasia::omp
