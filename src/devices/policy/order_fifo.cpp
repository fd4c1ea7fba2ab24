// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/order.hpp"

namespace amasia::devices::policy {
namespace {
Nanos as_put(const TaskDescription&, Nanos) { return 0; }
}  // namespace

const Order kFifoOrder = {
    .name = "fifo",
    .description = "the oldest task that fits; one that was passed over often gets a device",
    .key = as_put,
    .reserves = true};

}  // namespace amasia::devices::policy
