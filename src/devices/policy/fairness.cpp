// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/fairness.hpp"

namespace amasia::devices::policy {
namespace {
double one_each(double, double) { return 1e6; }
double device_time(double ran, double share) { return ran * share; }
}  // namespace

const Fairness kNoFairness = {
    .name = "one-line", .description = "all clients' tasks stand in one line", .charge = nullptr};
const Fairness kTurnFairness = {.name = "turns",
                                .description = "clients start as many tasks each, by their weights",
                                .charge = one_each,
                                .counts_tasks = true};
const Fairness kFairFairness = {.name = "fair",
                                .description = "clients get as much device time, by their weights",
                                .charge = device_time};

}  // namespace amasia::devices::policy
