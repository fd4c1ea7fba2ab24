// SPDX-License-Identifier: Apache-2.0
// Which OpenMP runtime a process or a program is linked to, told by the names of its libraries.
#pragma once

#include <string>
#include <string_view>

namespace amasia::launch {

enum class OpenMpRuntime { kNone, kLibomp, kLibgomp };

// By a library's file name, with or without directory and version: libomp.so.5, libgomp.so.1.
// libiomp5 is libomp under another name.
OpenMpRuntime openmp_runtime_of(std::string_view library) noexcept;

// The runtime that this process has loaded so far, kLibomp where it has both; its path goes to
// `path` if not null. Any thread; takes the loader's lock; allocates only for `path`.
OpenMpRuntime loaded_openmp_runtime(std::string* path = nullptr);

}  // namespace amasia::launch
