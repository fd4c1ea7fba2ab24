// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/own_names.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "launch/launch.hpp"
#include "omp/launch/dynamic_section.hpp"
#include "omp/launch/function_slots.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

constexpr std::string_view kAllocator[] = {
    "malloc",        "free",    "calloc", "realloc",           "memalign", "aligned_alloc",
    "posix_memalign", "valloc", "pvalloc", "malloc_usable_size", "reallocarray"};

}  // namespace

void bind_runtime_to_c_library(const ObjectTable& objects) {
  std::vector<Binding> functions;
  for (const std::string_view name : exported_functions(objects[0])) {
    if (std::ranges::find(kAllocator, name) != std::end(kAllocator)) continue;
    // The next one after this library; names in string tables end with 0.
    const void* const next = dlsym(RTLD_NEXT, name.data());
    if (next == nullptr || !objects.is_of_c_library(next)) continue;
    functions.push_back({name, reinterpret_cast<std::uintptr_t>(next)});
  }
  if (functions.empty()) return;
  for (std::size_t i = 1; i < objects.size(); ++i) {
    const LoadedObject& object = objects[i];
    if (object.role != ObjectRole::kRuntime) continue;
    const std::string_view path = object.path;
    const auto slash = path.rfind('/');
    const auto file = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (launch::openmp_runtime_of(file) != launch::OpenMpRuntime::kNone) continue;
    if (const Status bound = bind_functions(object, functions); !bound.ok()) {
      base::log_line(base::LogLevel::kError,
                     "{} keeps calling the program's functions in place of the C library's: {}",
                     object.path, bound.error().message);
    }
  }
}

}  // namespace amasia::omp
