// SPDX-License-Identifier: Apache-2.0
// From CUDA C++ to code for a GPU. Needs the compiler (libnvrtc), but no GPU.
#pragma once

#include <string>

#include "devices/backends/backend.hpp"
#include "devices/backends/cuda/cuda_driver.hpp"
#include "devices/backends/program_cache.hpp"

namespace amasia::devices::cuda {

// Compiles `code` for compute capability `capability` (90 for 9.0) and returns a cubin, or PTX with
// its final zero. On failure "" and *outcome, with the compiler's log.
std::string compile(const Compiler& compiler, const ProgramCode& code, int capability,
                    Outcome* outcome);

// The same from the cache, or compiled and put there.
std::string compile_cached(const ProgramCode& code, int capability, ProgramCache& cache,
                           Outcome* outcome);

}  // namespace amasia::devices::cuda
