// SPDX-License-Identifier: Apache-2.0
// The checker is itself checked: every planted bug must be caught, by the model or by the
// protocol's own checks.
#include "dsm/protocol/planted_bugs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "dsm/protocol/explorer.hpp"

namespace amasia::dsm::protocol {
namespace {

void abort_if_caught(const Exploration& found) {
  if (found.violation.empty()) return;
  std::fprintf(stderr, "caught after %u states: %s\n", found.states, found.violation.c_str());
  std::abort();
}

// Aborts if it is caught; returns if not. Small clusters first, since most bugs show there.
void explore_with(Bug bug) {
  ModelSettings settings;
  settings.bug = bug;
  settings.prefetch = settings.spurious_faults = false;
  settings.evict = bug >= Bug::kEvictsAtOnce && bug < Bug::kOfferTakenWhileAsking;
  settings.offer = bug >= Bug::kOfferTakenWhileAsking;
  ModelSettings floor = settings;
  floor.floor = true;
  abort_if_caught(Explorer<2, 1, 4>(settings).explore_safety());
  abort_if_caught(Explorer<2, 1, 4>(floor).explore_drain());
  settings.spurious_faults = true;
  abort_if_caught(Explorer<2, 1, 4>(settings).explore_safety());
  settings.spurious_faults = false;
  settings.grain = floor.grain = Grain::kWholeSteps;
  abort_if_caught(Explorer<3, 1, 6>(settings, 1'000'000).explore_safety());
  abort_if_caught(Explorer<3, 1, 6>(floor, 1'000'000).explore_drain());
}

class PlantedBug : public testing::TestWithParam<int> {};

TEST_P(PlantedBug, IsCaught) {
  EXPECT_DEATH(explore_with(static_cast<Bug>(GetParam())), "caught after|check failed");
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::Range(1, static_cast<int>(Bug::kCount)),
                         [](const testing::TestParamInfo<int>& tested) {
                           return std::string(name_of(static_cast<Bug>(tested.param)));
                         });

}  // namespace
}  // namespace amasia::dsm::protocol
