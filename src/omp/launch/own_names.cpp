// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/own_names.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "launch/launch.hpp"
#include "omp/launch/dynamic_section.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

constexpr std::string_view kAllocator[] = {
    "malloc",        "free",    "calloc", "realloc",           "memalign", "aligned_alloc",
    "posix_memalign", "valloc", "pvalloc", "malloc_usable_size", "reallocarray"};

struct OwnFunction {
  std::string_view name;
  std::uintptr_t of_c_library = 0;
};

bool is_read_only_after_start(const LoadedObject& object, std::uintptr_t address) {
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type != PT_GNU_RELRO) continue;
    const std::uintptr_t begin = object.load_address + header.p_vaddr;
    if (address >= begin && address < begin + header.p_memsz) return true;
  }
  return false;
}

void write_slot(const LoadedObject& object, std::uintptr_t slot, const OwnFunction& function) {
  const bool closed = is_read_only_after_start(object, slot);
  void* const page = reinterpret_cast<void*>(base::round_down(slot, base::kPageSize));
  if (closed && mprotect(page, base::kPageSize, PROT_READ | PROT_WRITE) != 0) {
    return base::log_line(base::LogLevel::kError,
                          "{} keeps calling the program's function '{}' in place of the C "
                          "library's: mprotect: {}",
                          object.path, function.name, strerrordesc_np(errno));
  }
  *reinterpret_cast<std::uintptr_t*>(slot) = function.of_c_library;
  // If that fails the slot stays writable, as it is without RELRO.
  if (closed) mprotect(page, base::kPageSize, PROT_READ);
}

void rebind(const LoadedObject& object, std::span<const OwnFunction> functions) {
  const DynamicSection dynamic = dynamic_section_of(object);
  if (dynamic.symbols == nullptr || dynamic.strings == nullptr) return;
  for (const auto table : dynamic.relocations) {
    for (const ElfW(Rela) & relocation : table) {
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;
      const std::string_view name(dynamic.strings + symbol.st_name);
      const auto own = std::ranges::find(functions, name, &OwnFunction::name);
      if (own == functions.end()) continue;
      write_slot(object, object.load_address + relocation.r_offset, *own);
    }
  }
}

}  // namespace

void bind_runtime_to_c_library(const ObjectTable& objects) {
  std::vector<OwnFunction> functions;
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
    rebind(object, functions);
  }
}

}  // namespace amasia::omp
