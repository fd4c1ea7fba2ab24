// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/callees.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <vector>

namespace amasia::omp {
namespace {

// A function that its library chooses by the processor has no name, and others have several, of
// which the loader tells one. So these are told by their addresses.
bool fills(const void* function) {
  static const void* const memset_here = dlsym(RTLD_DEFAULT, "memset");
  return function == memset_here;
}

bool copies(const void* function) {
  static const std::array<const void*, 2> functions = {dlsym(RTLD_DEFAULT, "memcpy"),
                                                       dlsym(RTLD_DEFAULT, "memmove")};
  return std::ranges::find(functions, function) != functions.end();
}

bool is_of_reals(const void* function) {
  static const std::vector<const void*> functions = [] {
    std::vector<const void*> found;
    for (const char* const name : names_of_reals()) {
      found.push_back(dlsym(RTLD_DEFAULT, name));
    }
    return found;
  }();
  return std::ranges::find(functions, function) != functions.end();
}

}  // namespace

Callee callee_of(const void* function) {
  if (fills(function)) return Callee::kFills;
  if (copies(function)) return Callee::kCopies;
  if (is_of_reals(function)) return Callee::kOfReals;
  Dl_info info{};
  const bool has_name = dladdr(function, &info) != 0 && info.dli_saddr == function;
  return has_name && info.dli_sname != nullptr ? callee_named(info.dli_sname) : Callee::kOther;
}

}  // namespace amasia::omp
