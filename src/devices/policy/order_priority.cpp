// SPDX-License-Identifier: Apache-2.0
// Each `ageing` of waiting counts as one step of priority. A task of priority p put at t has, at
// any time, the precedence p + (now - t) / ageing: comparing two of them, `now` drops out.
#include "devices/policy/order.hpp"

namespace amasia::devices::policy {
namespace {

// Clients may give any number; beyond this it is the same.
constexpr std::int32_t kPriorityMax = 1000;

Nanos aged(const TaskDescription& task, Nanos ageing) {
  return task.put_at - std::clamp(task.priority, -kPriorityMax, kPriorityMax) * ageing;
}

}  // namespace

const Order kPriorityOrder = {
    .name = "priority",
    .description = "the highest priority first; waiting for `ageing-ms` counts as one step",
    .key = aged,
    .reserves = true};

}  // namespace amasia::devices::policy
