// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
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

// The rows that are wanted, in the order in which they are named.
std::vector<const Row*> rows_of(std::string_view wanted) {
  std::vector<const Row*> rows;
  if (wanted.empty()) {
    for (const Row& row : kBackends) rows.push_back(&row);
    return rows;
  }
  for (std::size_t begin = 0; begin <= wanted.size();) {
    const std::size_t end = std::min(wanted.find(',', begin), wanted.size());
    const auto name = wanted.substr(begin, end - begin);
    const auto row = std::find_if(std::begin(kBackends), std::end(kBackends),
                                  [&](const Row& one) { return one.name == name; });
    const bool again = std::find(rows.begin(), rows.end(), row) != rows.end();
    if (row != std::end(kBackends) && !again) rows.push_back(row);
    begin = end + 1;
  }
  return rows;
}

}  // namespace

Backends make_backends(std::string_view wanted) {
  Backends backends;
  backends.cache = std::make_unique<ProgramCache>(program_cache_folder());
  for (const Row* const row : rows_of(wanted)) {
    std::string why;
    auto made = row->make(*backends.cache, &why);
    if (made != nullptr && !made->devices().empty()) {
      backends.all.push_back(std::move(made));
    } else {
      base::log_line(base::LogLevel::kInfo, "no devices of {}: {}", row->name, why);
      if (!backends.absent.empty()) backends.absent += "; ";
      backends.absent += fmt::format("{}: {}", row->name, why);
    }
  }
  return backends;
}

}  // namespace amasia::devices
