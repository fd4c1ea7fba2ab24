// SPDX-License-Identifier: Apache-2.0
// In which order queued tasks are considered. An order is a file, order_<name>.cpp, and a line in
// registry.cpp.
//
// No order blocks at its head: a task that fits nowhere is passed over for those behind it (paper
// 2.3). One that `reserves` gives a task that was passed over `Settings::overtakes_max` times a
// device of its own until it has started there, so that a large task is not kept out for ever by a
// stream of small ones.
#pragma once

#include <string_view>

#include "devices/policy/terms.hpp"

namespace amasia::devices::policy {

struct Order {
  std::string_view name, description;
  // Smaller is sooner; equal ones in the order in which they were put. Fixed when the task is put:
  // ageing needs no more, since two tasks that wait gain alike.
  Nanos (*key)(const TaskDescription& task, Nanos ageing);
  bool reserves = true;
};

extern const Order kFifoOrder;
extern const Order kFirstFitOrder;
extern const Order kPriorityOrder;

}  // namespace amasia::devices::policy
