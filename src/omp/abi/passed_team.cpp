// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/passed_team.hpp"

#include "omp/abi/omp_api.hpp"
#include "omp/node.hpp"

namespace amasia::omp {

void PassedTeam::enter(std::uint32_t number) const {
  if (shows_affinity) show_affinity();
  if (keeps_values != nullptr) keeps_values->thread_values().enter(number);
}

// The first thread of a team is where it is in any case.
void PassedTeam::leave(std::uint32_t number) const {
  if (looks_at_values != nullptr && number != 0) looks_at_values->look_at_values();
}

PassedTeam passed_team_of(Node& node, const RegionRequest& request, const RegionPlan& plan) {
  const bool looks = plan.reason != SingleReason::kNested && node.watches_values();
  return {.shows_affinity = request.shows_affinity,
          .keeps_values = plan.keeps_values() ? &node : nullptr,
          .looks_at_values = looks ? &node : nullptr,
          .watch = node.watch_of(request, plan)};
}

}  // namespace amasia::omp
