// SPDX-License-Identifier: Apache-2.0
// What the dynamic section of a loaded object tells: the names that it gives to others and takes
// from them. Reads the object's memory; allocates only what it returns. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "omp/launch/objects.hpp"

namespace amasia::omp {

// Pointers into the object; nullptr: it does not tell.
struct DynamicSection {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* hash = nullptr;  // GNU's
  std::array<std::span<const ElfW(Rela)>, 2> relocations;
};
DynamicSection dynamic_section_of(const LoadedObject& object);

// Functions that the object defines for others, by name.
std::vector<std::string_view> exported_functions(const LoadedObject& object);

// What the object takes from others, by name; names occur as often as they are bound.
std::vector<std::string_view> imported_names(const LoadedObject& object);

}  // namespace amasia::omp
