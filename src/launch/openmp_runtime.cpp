// SPDX-License-Identifier: Apache-2.0
#include "launch/openmp_runtime.hpp"

#include <link.h>

namespace amasia::launch {
namespace {

struct Search {
  OpenMpRuntime found = OpenMpRuntime::kNone;
  std::string* path = nullptr;
};

int visit(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const OpenMpRuntime runtime = openmp_runtime_of(info->dlpi_name);
  if (runtime == OpenMpRuntime::kNone) return 0;
  search.found = runtime;
  if (search.path != nullptr) *search.path = info->dlpi_name;
  return runtime == OpenMpRuntime::kLibomp ? 1 : 0;  // keep looking for a libomp beside a libgomp
}

}  // namespace

OpenMpRuntime openmp_runtime_of(std::string_view library) noexcept {
  if (const auto slash = library.rfind('/'); slash != std::string_view::npos) {
    library.remove_prefix(slash + 1);
  }
  const auto is = [library](std::string_view name) {
    return library.starts_with(name) &&
           (library.size() == name.size() || library[name.size()] == '.');
  };
  if (is("libomp.so") || is("libiomp5.so")) return OpenMpRuntime::kLibomp;
  if (is("libgomp.so")) return OpenMpRuntime::kLibgomp;
  return OpenMpRuntime::kNone;
}

OpenMpRuntime loaded_openmp_runtime(std::string* path) {
  Search search{.path = path};
  dl_iterate_phdr(visit, &search);
  return search.found;
}

}  // namespace amasia::launch
