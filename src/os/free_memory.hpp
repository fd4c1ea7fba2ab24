// SPDX-License-Identifier: Apache-2.0
// How much memory the host has to give.
#pragma once

#include <string_view>

#include "base/base.hpp"

namespace amasia::os {

// What can be had without swapping, and the swap that is free; 0 where it is not told.
struct FreeMemory {
  Bytes available = 0;
  Bytes swap = 0;
};
// From the text of /proc/meminfo. Pure.
FreeMemory parse_free_memory(std::string_view text);
// Of this moment, and of the host: groups may allow less.
FreeMemory free_memory();

}  // namespace amasia::os
