// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/cuda/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace amasia::devices::cuda {
namespace {

void* open_first(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

#define AMASIA_CUDA_FIND(member, symbol, parameters)                                      \
  table.member = reinterpret_cast<decltype(table.member)>(::dlsym(handle, #symbol));      \
  if (table.member == nullptr) missing = #symbol;
#define AMASIA_CUDA_FIND_OPTIONAL(member, symbol, parameters) \
  table.member = reinterpret_cast<decltype(table.member)>(::dlsym(handle, #symbol));

Result<const Driver*> open_driver() {
  void* const handle = open_first({"libcuda.so.1"});
  if (handle == nullptr) return Error{"no CUDA here: libcuda.so.1 is not installed"};
  static Driver table;
  const char* missing = nullptr;
  AMASIA_CUDA_FUNCTIONS(AMASIA_CUDA_FIND)
  AMASIA_CUDA_OPTIONAL_FUNCTIONS(AMASIA_CUDA_FIND_OPTIONAL)
  if (missing != nullptr) return Error{fmt::format("libcuda.so.1 has no {}", missing)};
  if (const CUresult error = table.Init(0); error != kSuccess) {
    return Error{fmt::format("CUDA does not start: {}", table.text_of(error))};
  }
  return static_cast<const Driver*>(&table);
}

Result<const Compiler*> open_compiler() {
  std::vector<std::string> names;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const folder = std::getenv(variable);
    if (folder != nullptr && *folder != '\0') {
      names.push_back(std::string(folder) + "/lib64/libnvrtc.so");
    }
  }
  for (const char* const name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                 "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"}) {
    names.emplace_back(name);
  }
  void* const handle = open_first(names);
  if (handle == nullptr) {
    return Error{"no compiler for CUDA here: libnvrtc.so is neither installed nor in "
                 "$CUDA_HOME/lib64"};
  }
  static Compiler table;
  const char* missing = nullptr;
  AMASIA_NVRTC_FUNCTIONS(AMASIA_CUDA_FIND)
  if (missing != nullptr) return Error{fmt::format("libnvrtc.so has no {}", missing)};
  return static_cast<const Compiler*>(&table);
}

}  // namespace

std::string Driver::text_of(CUresult error) const {
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(error, &name) != kSuccess || name == nullptr) {
    return fmt::format("CUDA error {}", error);
  }
  GetErrorString(error, &text);
  return fmt::format("{} ({})", name, text == nullptr ? "" : text);
}

Result<const Driver*> load_driver() {
  static const Result<const Driver*> driver = open_driver();
  return driver;
}

Result<const Compiler*> load_compiler() {
  static const Result<const Compiler*> compiler = open_compiler();
  return compiler;
}

}  // namespace amasia::devices::cuda
