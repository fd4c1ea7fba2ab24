// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs, through the driver's own interface. Kernels come from CUDA C++, which NVRTC
// compiles, from cubin, fatbin or PTX.
#pragma once

#include <memory>

#include "devices/backends/backend.hpp"
#include "devices/backends/program_cache.hpp"

namespace amasia::devices {

// All GPUs that the driver shows. nullptr where there is none, with one sentence in `*why`.
// Compiled programs are kept in `cache`, which outlives the back end.
std::unique_ptr<Backend> make_cuda_backend(ProgramCache& cache, std::string* why);

}  // namespace amasia::devices
