// SPDX-License-Identifier: Apache-2.0
// On which of the devices that have room a task is started, or that it had better wait. A placement
// is a file, placement_<name>.cpp, and a line in registry.cpp.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "devices/policy/estimates.hpp"
#include "devices/policy/ledger.hpp"

namespace amasia::devices::policy {

// How long, in nanoseconds, each device is busy with what was started there; by the time it would
// need for all of it one after the other on all its elements.
using BusyUntil = std::array<Nanos, kMaxDevices>;

// What it may ask. `fitting` is not empty and part of `eligible`: where the task could run.
struct PlacementQuestion {
  const TaskDescription& task;
  DeviceSet fitting = 0;
  DeviceSet eligible = 0;
  const Ledger& ledger;
  const Estimates& estimates;
  Nanos now = 0;
  // When the task was first told to wait; the placement sets it. Negative: never yet.
  Nanos& waits_since;
  // With what was started, and with tasks that in this round were told to wait for a device: the
  // placement adds those.
  BusyUntil& busy;
};

// A device of `fitting`; or none, to wait: until something ends, and at most until `ask_at`.
struct PlacementAnswer {
  std::optional<DeviceId> device;
  Nanos ask_at = -1;
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual PlacementAnswer choose(PlacementQuestion question) = 0;
  virtual void started(const TaskDescription&, DeviceId) {}
  virtual void ended(const TaskDescription&, DeviceId) {}
};

struct Placement {
  std::string_view name, description;
  std::unique_ptr<PlacementPolicy> (*make)();
};

extern const Placement kFirstDevicePlacement;
extern const Placement kTwoLevelPlacement;
extern const Placement kDelayPlacement;
extern const Placement kHybridPlacement;
extern const Placement kEarliestFinishPlacement;

// The paper's load balancing (2.3): classes take turns, and in each class its devices. Used by
// other placements where they have no preference.
class TwoLevelRoundRobin {
 public:
  DeviceId choose(DeviceSet fitting, const Ledger& ledger);

 private:
  unsigned class_ = kDeviceClasses - 1;  // the last one used
  std::array<unsigned, kDeviceClasses> device_ = {kMaxDevices - 1, kMaxDevices - 1,
                                                  kMaxDevices - 1};
};

// The device of `eligible` that has most of what the task reads; nullopt: none has anything.
std::optional<DeviceId> device_with_most(const PlacementQuestion& question);
// Delay scheduling (Zaharia et al., EuroSys 2010): waits for `home`, as long as the copy that it
// saves would take, then does as if there were none. Never later than twice what was best.
bool still_waits(const PlacementQuestion& question, DeviceId home, Nanos& until);

}  // namespace amasia::devices::policy
