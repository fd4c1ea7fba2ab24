// SPDX-License-Identifier: Apache-2.0
// The slots by which a loaded object calls functions of others, or takes their address; the loader
// fills them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "omp/launch/objects.hpp"

namespace amasia::omp {

struct Binding {
  std::string_view name;
  std::uintptr_t function = 0;
};

// Has the object call these functions where it calls what has their names in others, be it bound
// already or not. Before its code runs; on an unmanaged stack. Error: a slot could not be changed;
// those after it were not looked at.
Status bind_functions(const LoadedObject& object, std::span<const Binding> bindings);

// Writes a word of the object, which the loader may have made read-only; 0 or errno. On an
// unmanaged stack.
int write_slot(const LoadedObject& object, std::uintptr_t slot, std::uintptr_t value) noexcept;

}  // namespace amasia::omp
