// SPDX-License-Identifier: Apache-2.0
// What modules have said that they do with places of a type: copies, and memory. Written while no
// task runs, read by all.
#pragma once

#include <array>

#include "amasia/tasks.hpp"

namespace amasia::tasks::detail {

struct Copiers {
  // By the type of the place that is written, then of the one that is read.
  std::array<std::array<copy_function, place_type_count>, place_type_count> copies;
  std::array<memory_functions, place_type_count> memories;
};

}  // namespace amasia::tasks::detail
