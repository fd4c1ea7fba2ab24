// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/finish.hpp"

#include <array>
#include <cstddef>

#include "launch/launch.hpp"

namespace amasia::omp {
namespace {

using Function = void (*)();

struct Termination {
  const Function* functions = nullptr;
  std::size_t count = 0;
  Function last = nullptr;
};

Termination termination_of(const dl_phdr_info& info) {
  Termination found;
  for (std::uint16_t i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_FINI_ARRAY) {
        found.functions = reinterpret_cast<const Function*>(info.dlpi_addr + entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_FINI_ARRAYSZ) {
        found.count = entry->d_un.d_val / sizeof(Function);
      } else if (entry->d_tag == DT_FINI) {
        found.last = reinterpret_cast<Function>(info.dlpi_addr + entry->d_un.d_ptr);
      }
    }
  }
  return found;
}

constexpr std::size_t kMaxTerminations = ObjectTable::kMaxObjects + ObjectTable::kMaxLate;

struct Terminations {
  bool with_runtimes = true;
  std::array<Termination, kMaxTerminations> list;
  std::size_t count = 0;
};

int collect(dl_phdr_info* info, std::size_t, void* argument) {
  auto& all = *static_cast<Terminations*>(argument);
  const bool openmp = launch::openmp_runtime_of(info->dlpi_name) != launch::OpenMpRuntime::kNone;
  if (openmp && !all.with_runtimes) return 0;
  if (!openmp && role_of_library(info->dlpi_name) != ObjectRole::kProgram) return 0;
  if (all.count < kMaxTerminations) all.list[all.count++] = termination_of(*info);
  return 0;
}

}  // namespace

void run_program_destructors(bool with_runtimes) {
  // Collected first: a destructor may call the loader, whose lock the iteration holds.
  static Terminations all;
  all.with_runtimes = with_runtimes;
  dl_iterate_phdr(collect, &all);
  for (std::size_t i = 0; i < all.count; ++i) {
    const Termination& termination = all.list[i];
    for (std::size_t at = termination.count; at > 0; --at) termination.functions[at - 1]();
    if (termination.last != nullptr) termination.last();
  }
}

}  // namespace amasia::omp
