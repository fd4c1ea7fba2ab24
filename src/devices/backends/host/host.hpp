// SPDX-License-Identifier: Apache-2.0
// The back end that is always there: kernels are functions of the program, or of a shared object
// (mcl_host_kernel), and run on this process's cores. Buffers are the program's own memory.
//
// One device of class CPU. A work is cut into parts of whole work groups; a pool of threads, one a
// core, takes parts. The threads begin with the first work and sleep while there is none. A work
// that its caller waits for, of a kernel that was short the last time, is run by the caller itself.
#pragma once

#include <memory>

#include "devices/backends/backend.hpp"

namespace amasia::devices {

// `threads` 0: as many as this process may use cores.
std::unique_ptr<Backend> make_host_backend(unsigned threads = 0);

}  // namespace amasia::devices
