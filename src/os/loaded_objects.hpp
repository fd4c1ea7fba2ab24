// SPDX-License-Identifier: Apache-2.0
// The executable and the libraries of this process, as the loader has them.
#pragma once

#include <link.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "os/syscall_trap.hpp"

namespace amasia::os {

struct LoadedObject {
  std::string path;  // of the executable, too
  std::uintptr_t load_address = 0;
  std::vector<AddressRange> code;  // segments that may be executed
  std::string build_id;            // hexadecimal digits; "": it has none
};

// Of an object with these segments: hexadecimal digits, "" if it has none. Reads its memory.
std::string build_id(std::uintptr_t load_address, std::span<const ElfW(Phdr)> segments);

// In the loader's order, without the kernel's own. Any thread; allocates.
std::vector<LoadedObject> loaded_objects();

}  // namespace amasia::os
