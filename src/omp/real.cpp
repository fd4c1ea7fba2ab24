// SPDX-License-Identifier: Apache-2.0
#include "omp/real.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::omp {
namespace {

void* symbol_in(void* object, const char* name, const char* version) {
  return version == nullptr ? dlsym(object, name) : dlvsym(object, name, version);
}

const void* own_base() {
  Dl_info info{};
  static const char anchor = 0;
  dladdr(&anchor, &info);
  return info.dli_fbase;
}

bool is_ours(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) == 0 || info.dli_fbase == own_base();
}

int collect_name(dl_phdr_info* info, std::size_t, void* names) {
  if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0') {
    static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  }
  return 0;
}

void* find_in_all_objects(const char* name, const char* version) {
  std::vector<std::string> names;
  dl_iterate_phdr(collect_name, &names);
  for (const std::string& object_name : names) {
    void* const object = dlopen(object_name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) continue;
    void* const found = symbol_in(object, name, version);
    dlclose(object);  // it stays loaded: this only gives back the reference taken above
    if (found != nullptr && !is_ours(found)) return found;
  }
  return nullptr;
}

}  // namespace

void* find_real(const char* name, const char* version) {
  void* const next = symbol_in(RTLD_NEXT, name, version);
  return next != nullptr ? next : find_in_all_objects(name, version);
}

void* need_real(const char* name) {
  void* const found = find_real(name);
  if (found == nullptr) {
    base::log_line(base::LogLevel::kError,
                   "the program calls {}, but no library that it has loaded defines it; "
                   "is its OpenMP runtime (libomp or libgomp) installed?",
                   name);
    _exit(2);
  }
  return found;
}

}  // namespace amasia::omp
