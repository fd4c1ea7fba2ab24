// SPDX-License-Identifier: Apache-2.0
// What the threads of a team do for us beside the program's part, where the next runtime forks it.
#pragma once

#include <cstdint>

#include "omp/region/region.hpp"

namespace amasia::omp {

class Node;
class SpinWatch;

// One for a fork; constant while its threads run.
struct PassedTeam {
  bool shows_affinity = false;
  Node* keeps_values = nullptr;     // whose thread_values() they enter; nullptr: none
  Node* looks_at_values = nullptr;  // that watches_values(); nullptr: none
  SpinWatch* watch = nullptr;       // nullptr: each thread may have a core

  // On the thread of this number, before its part of the region and after it. Native stack.
  void enter(std::uint32_t number) const;
  void leave(std::uint32_t number) const;
};

// Of a region that stays, as planned; `request` tells whether its threads are shown.
PassedTeam passed_team_of(Node& node, const RegionRequest& request, const RegionPlan& plan);

}  // namespace amasia::omp
