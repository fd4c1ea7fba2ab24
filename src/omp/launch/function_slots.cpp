// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/function_slots.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "omp/launch/dynamic_section.hpp"

namespace amasia::omp {
namespace {

bool is_read_only_after_start(const LoadedObject& object, std::uintptr_t address) {
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type != PT_GNU_RELRO) continue;
    // The loader rounds both ends down: a page that RELRO only begins to fill stays writable.
    const std::uintptr_t begin = object.load_address + header.p_vaddr;
    const std::uintptr_t end = base::round_down(begin + header.p_memsz, base::kPageSize);
    if (address >= base::round_down(begin, base::kPageSize) && address < end) return true;
  }
  return false;
}

}  // namespace

int write_slot(const LoadedObject& object, std::uintptr_t slot, std::uintptr_t value) noexcept {
  const bool closed = is_read_only_after_start(object, slot);
  void* const page = reinterpret_cast<void*>(base::round_down(slot, base::kPageSize));
  if (closed && mprotect(page, base::kPageSize, PROT_READ | PROT_WRITE) != 0) return errno;
  *reinterpret_cast<std::uintptr_t*>(slot) = value;
  // If that fails the slot stays writable, as it is without RELRO.
  if (closed) mprotect(page, base::kPageSize, PROT_READ);
  return 0;
}

Status bind_functions(const LoadedObject& object, std::span<const Binding> bindings) {
  const DynamicSection dynamic = dynamic_section_of(object);
  if (dynamic.symbols == nullptr || dynamic.strings == nullptr) return base::ok();
  for (const auto table : dynamic.relocations) {
    for (const ElfW(Rela) & relocation : table) {
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;
      const std::string_view name(dynamic.strings + symbol.st_name);
      const auto binding = std::ranges::find(bindings, name, &Binding::name);
      if (binding == bindings.end()) continue;
      const int reason =
          write_slot(object, object.load_address + relocation.r_offset, binding->function);
      if (reason != 0) return base::errno_error(reason, fmt::format("'{}': mprotect", name));
    }
  }
  return base::ok();
}

}  // namespace amasia::omp
