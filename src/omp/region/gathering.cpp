// SPDX-License-Identifier: Apache-2.0
#include "omp/region/gathering.hpp"

#include <algorithm>
#include <utility>

namespace amasia::omp {

Gathering::Action Gathering::on_run(Region& region, bool shared) {
  const std::uint64_t before = std::exchange(region.latest, ++runs_);
  const bool was_shared = std::exchange(region.shared, shared);
  ++region.runs;
  if (shared) {
    data_went_out_ = true;
    return std::exchange(gathers_, false) ? Action::kStop : Action::kNone;
  }
  if (!was_shared || !data_went_out_) return Action::kNone;
  const bool others_share = std::ranges::any_of(regions_, [before](const Region* other) {
    return other->shared && (other->runs > 1 || other->latest > before);
  });
  if (others_share) return Action::kNone;
  data_went_out_ = false;
  gathers_ = true;
  return Action::kGather;
}

}  // namespace amasia::omp
