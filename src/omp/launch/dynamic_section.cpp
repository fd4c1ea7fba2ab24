// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/dynamic_section.hpp"

namespace amasia::omp {

DynamicSection dynamic_section_of(const LoadedObject& object) {
  DynamicSection found;
  const ElfW(Dyn)* entry = nullptr;
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    if (object.headers[i].p_type != PT_DYNAMIC) continue;
    entry = reinterpret_cast<const ElfW(Dyn)*>(object.load_address + object.headers[i].p_vaddr);
  }
  if (entry == nullptr) return found;
  std::array<const ElfW(Rela)*, 2> tables{};
  std::array<std::size_t, 2> bytes{};
  for (; entry->d_tag != DT_NULL; ++entry) {
    // glibc has relocated addresses in place, except where .dynamic is read-only.
    std::uintptr_t at = entry->d_un.d_ptr;
    if (at < object.load_address) at += object.load_address;
    switch (entry->d_tag) {
      case DT_SYMTAB: found.symbols = reinterpret_cast<const ElfW(Sym)*>(at); break;
      case DT_STRTAB: found.strings = reinterpret_cast<const char*>(at); break;
      case DT_GNU_HASH: found.hash = reinterpret_cast<const std::uint32_t*>(at); break;
      case DT_RELA: tables[0] = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_JMPREL: tables[1] = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_RELASZ: bytes[0] = entry->d_un.d_val; break;
      case DT_PLTRELSZ: bytes[1] = entry->d_un.d_val; break;
      default: break;
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (tables[i] != nullptr) found.relocations[i] = {tables[i], bytes[i] / sizeof(ElfW(Rela))};
  }
  return found;
}

std::vector<std::string_view> exported_functions(const LoadedObject& object) {
  std::vector<std::string_view> names;
  const DynamicSection dynamic = dynamic_section_of(object);
  if (dynamic.hash == nullptr || dynamic.symbols == nullptr) return names;
  // Buckets, first symbol, words of the filter, shift; filter; buckets; chains, the last of each
  // with its lowest bit set.
  const std::uint32_t buckets = dynamic.hash[0], first = dynamic.hash[1];
  const std::uint32_t* const bucket = dynamic.hash + 4 + 2 * dynamic.hash[2];
  const std::uint32_t* const chain = bucket + buckets;
  for (std::uint32_t i = 0; i < buckets; ++i) {
    if (bucket[i] < first) continue;  // an empty one
    for (std::uint32_t index = bucket[i];; ++index) {
      const ElfW(Sym)& symbol = dynamic.symbols[index];
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (function && symbol.st_shndx != SHN_UNDEF) {
        names.emplace_back(dynamic.strings + symbol.st_name);
      }
      if ((chain[index - first] & 1) != 0) break;
    }
  }
  return names;
}

std::vector<std::string_view> imported_names(const LoadedObject& object) {
  std::vector<std::string_view> names;
  const DynamicSection dynamic = dynamic_section_of(object);
  if (dynamic.symbols == nullptr || dynamic.strings == nullptr) return names;
  for (const auto table : dynamic.relocations) {
    for (const ElfW(Rela) & relocation : table) {
      const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
      names.emplace_back(dynamic.strings + symbol.st_name);
    }
  }
  return names;
}

}  // namespace amasia::omp
