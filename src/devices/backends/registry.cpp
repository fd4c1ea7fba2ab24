// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/registry.hpp"

#include <string>

#include "devices/backends/cuda/cuda.hpp"
#include "devices/backends/host/host.hpp"
#include "devices/backends/opencl/opencl.hpp"

namespace amasia::devices {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(ProgramCache& cache, std::string* why);
};
constexpr Row kBackends[] = {
    {"cuda", &make_cuda_backend},
    {"opencl", &make_opencl_backend},
    {"host", [](ProgramCache&, std::string*) { return make_host_backend(); }},
};

bool is_wanted(std::string_view wanted, std::string_view name) {
  if (wanted.empty()) return true;
  for (std::size_t begin = 0; begin <= wanted.size();) {
    const std::size_t end = std::min(wanted.find(',', begin), wanted.size());
    if (wanted.substr(begin, end - begin) == name) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

Backends make_backends(std::string_view wanted) {
  Backends backends;
  backends.cache = std::make_unique<ProgramCache>(program_cache_folder());
  for (const Row& row : kBackends) {
    if (!is_wanted(wanted, row.name)) continue;
    std::string why;
    auto made = row.make(*backends.cache, &why);
    if (made != nullptr && !made->devices().empty()) {
      backends.all.push_back(std::move(made));
    } else {
      base::log_line(base::LogLevel::kInfo, "no devices of {}: {}", row.name, why);
    }
  }
  return backends;
}

}  // namespace amasia::devices
