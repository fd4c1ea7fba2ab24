// SPDX-License-Identifier: Apache-2.0
#include "omp/code/program_code.hpp"

#include <link.h>

#include <algorithm>

namespace amasia::omp {

ProgramCode ProgramCode::around(const void* function) {
  struct Search {
    const Byte* function;
    ProgramCode found;
  } search{static_cast<const Byte*>(function), {}};
  const auto look_in_object = [](dl_phdr_info* info, std::size_t, void* argument) {
    auto& [wanted, found] = *static_cast<Search*>(argument);
    ProgramCode code;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      const auto* const begin = reinterpret_cast<const Byte*>(info->dlpi_addr + part.p_vaddr);
      const Byte* const end = begin + part.p_memsz;
      code.low_ = code.low_ == nullptr ? begin : std::min(code.low_, begin);
      code.high_ = std::max(code.high_, end);
      if ((part.p_flags & PF_X) != 0 && wanted >= begin && wanted < end) {
        code.begin_ = begin;
        code.end_ = end;
      }
    }
    if (code.empty()) return 0;
    found = code;
    return 1;
  };
  dl_iterate_phdr(look_in_object, &search);
  return search.found;
}

const void* ProgramCode::at_slot(const Byte* slot) const {
  if (slot < low_ || slot + sizeof(void*) > high_) return nullptr;
  const void* value;
  std::memcpy(&value, slot, sizeof value);
  return value;
}

const void* ProgramCode::slot_value(const Byte* next) const {
  return at_slot(next + distance_at(next - 4));
}

const void* ProgramCode::through_stub(const Byte* stub) const {
  if (!holds(stub) || end_ - stub < 16) return nullptr;
  if (std::memcmp(stub, "\xf3\x0f\x1e\xfa", 4) == 0) stub += 4;  // endbr64
  if (*stub == 0xf2) ++stub;                                      // bnd
  return stub[0] == 0xff && stub[1] == 0x25 ? slot_value(stub + 6) : nullptr;
}

}  // namespace amasia::omp
