// SPDX-License-Identifier: Apache-2.0
// Devices of OpenCL drivers, through the ICD loader.
#pragma once

#include <memory>

#include "devices/backends/backend.hpp"
#include "devices/backends/program_cache.hpp"

namespace amasia::devices {

// All devices of all platforms; a platform without devices is passed over. nullptr where there is
// none, with one sentence in `*why`. Compiled programs are kept in `cache`, which outlives the back
// end. Blocks while drivers start: 50 ms and more.
std::unique_ptr<Backend> make_opencl_backend(ProgramCache& cache, std::string* why);

namespace opencl {
// How ends of works are found out: by the driver's call-back, which wakes nobody in vain, or, on
// other devices than CPUs, where that comes late, by looking. kLookedFor: on all, for tests.
enum class Ends { kAsSuits, kLookedFor };
}  // namespace opencl
std::unique_ptr<Backend> make_opencl_backend(ProgramCache& cache, std::string* why,
                                             opencl::Ends ends);

}  // namespace amasia::devices
