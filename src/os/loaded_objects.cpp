// SPDX-License-Identifier: Apache-2.0
#include "os/loaded_objects.hpp"

#include <limits.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "base/base.hpp"

namespace amasia::os {
namespace {

std::string path_of_this_program() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "the executable";
}

int visit(dl_phdr_info* info, std::size_t, void* argument) {
  const std::string_view path(info->dlpi_name);
  if (path.starts_with("linux-vdso")) return 0;
  LoadedObject object;
  object.path = path.empty() ? path_of_this_program() : std::string(path);
  object.load_address = info->dlpi_addr;
  const std::span segments(info->dlpi_phdr, info->dlpi_phnum);
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    object.code.push_back({begin, begin + segment.p_memsz});
  }
  object.build_id = build_id(object.load_address, segments);
  static_cast<std::vector<LoadedObject>*>(argument)->push_back(std::move(object));
  return 0;
}

}  // namespace

std::string build_id(std::uintptr_t load_address, std::span<const ElfW(Phdr)> segments) {
  for (const ElfW(Phdr) & header : segments) {
    if (header.p_type != PT_NOTE) continue;
    const auto* note = reinterpret_cast<const char*>(load_address + header.p_vaddr);
    const char* const end = note + header.p_memsz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) head;
      std::memcpy(&head, note, sizeof head);
      const char* const name = note + sizeof head;
      const char* const content = name + base::round_up(head.n_namesz, 4);
      note = content + base::round_up(head.n_descsz, 4);
      if (note > end) break;
      if (head.n_type != NT_GNU_BUILD_ID || head.n_namesz != 4) continue;
      if (std::memcmp(name, "GNU", 4) != 0) continue;
      std::string digits;
      for (std::uint32_t at = 0; at < head.n_descsz; ++at) {
        digits += fmt::format("{:02x}", static_cast<unsigned char>(content[at]));
      }
      return digits;
    }
  }
  return "";
}

std::vector<LoadedObject> loaded_objects() {
  std::vector<LoadedObject> all;
  dl_iterate_phdr(visit, &all);
  return all;
}

}  // namespace amasia::os
