// SPDX-License-Identifier: Apache-2.0
// Whose turn it is among clients that have tasks queued. A line in registry.cpp and a definition in
// fairness.cpp.
//
// Start-time fair queueing (Goyal, Vin, Cheng; SIGCOMM 1996): each client has a virtual time that
// grows by what it gets, divided by its weight; the client with the least is next. One that had
// nothing queued begins at the time of those that did, so that idling saves up nothing.
#pragma once

#include <string_view>

#include "base/base.hpp"

namespace amasia::devices::policy {

struct Fairness {
  std::string_view name, description;
  // What a task adds to its client's virtual time: `ran` nanoseconds on a part `share` of a device.
  // nullptr: clients are not told apart, all tasks stand in one line.
  double (*charge)(double ran, double share);
  bool counts_tasks = false;  // what it adds is for the task, however long that ran
};

extern const Fairness kNoFairness;
extern const Fairness kTurnFairness;
extern const Fairness kFairFairness;

}  // namespace amasia::devices::policy
