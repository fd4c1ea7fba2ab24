// SPDX-License-Identifier: Apache-2.0
#include "omp/region/thread_number.hpp"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace amasia::omp {
namespace {

const char* skip_blanks(const char* text) {
  while (std::isspace(static_cast<unsigned char>(*text)) != 0) ++text;
  return text;
}

// As libgomp's parse_unsigned_long_list: one wrong number makes the whole wrong.
bool libgomp_takes(const char* text) {
  for (;;) {
    char* end = nullptr;
    errno = 0;
    const auto number = static_cast<long>(std::strtoul(text, &end, 10));
    if (end == text || errno != 0 || number <= 0) return false;
    text = skip_blanks(end);
    if (*text == '\0') return true;
    if (*text++ != ',') return false;
  }
}

bool libomp_takes(std::string_view text) {
  return text.find_first_not_of("0123456789, \t") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace

bool sets_threads(const char* value, Abi abi) {
  if (value == nullptr) return false;
  return abi == Abi::kGomp ? libgomp_takes(value) : libomp_takes(value);
}

bool environment_sets_threads(Abi abi) { return sets_threads(std::getenv("OMP_NUM_THREADS"), abi); }

}  // namespace amasia::omp
