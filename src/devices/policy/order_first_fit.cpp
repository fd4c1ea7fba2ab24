// SPDX-License-Identifier: Apache-2.0
// The paper's own order to the letter (2.3): what fits goes. Best throughput of small tasks, and no
// bound on how long a large one waits.
#include "devices/policy/order.hpp"

namespace amasia::devices::policy {
namespace {
Nanos as_put(const TaskDescription&, Nanos) { return 0; }
}  // namespace

const Order kFirstFitOrder = {
    .name = "first-fit",
    .description = "the oldest task that fits; a large one may wait without bound",
    .key = as_put,
    .reserves = false};

}  // namespace amasia::devices::policy
