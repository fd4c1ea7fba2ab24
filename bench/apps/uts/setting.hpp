// SPDX-License-Identifier: Apache-2.0
// What the searches over nodes and over ranks are asked for.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tree.hpp"

namespace uts {

inline constexpr Shape kTrees[] = {kT1, kT3, kT5};

struct Setting {
  std::size_t tree = 0;
  int rounds = 5;
  int threads = 1;     // of each node or rank
  bool quick = false;  // all trees once, without times
  // Of uts_mpi_openmp: nodes that change hands at once, and between two looks for messages.
  std::size_t chunk = 4;
  int every = 128;

  const Shape& shape() const { return kTrees[tree]; }
};

// [--tree T1|T3|T5] [--rounds R] [--threads T] [--quick] [--chunk C] [--every E]
inline Setting setting_of(int argc, char** argv) {
  Setting out;
  for (int n = 1; n < argc; ++n) {
    const char* const value = n + 1 < argc ? argv[n + 1] : "";
    const int number = std::max(1, std::atoi(value));
    if (std::strcmp(argv[n], "--quick") == 0) out.quick = true;
    if (std::strcmp(argv[n], "--rounds") == 0) out.rounds = number;
    if (std::strcmp(argv[n], "--threads") == 0) out.threads = number;
    if (std::strcmp(argv[n], "--chunk") == 0) out.chunk = static_cast<std::size_t>(number);
    if (std::strcmp(argv[n], "--every") == 0) out.every = number;
    if (std::strcmp(argv[n], "--tree") != 0) continue;
    for (std::size_t tree = 0; tree < std::size(kTrees); ++tree) {
      if (std::strcmp(value, kTrees[tree].name) == 0) out.tree = tree;
    }
  }
  return out;
}

// Ends the program where a search has not found what is published.
inline void expect(long got, const Shape& shape) {
  if (got == shape.nodes) return;
  std::fprintf(stderr, "%s: %ld nodes instead of %ld\n", shape.name, got, shape.nodes);
  std::exit(1);
}

}  // namespace uts
