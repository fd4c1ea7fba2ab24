// SPDX-License-Identifier: Apache-2.0
// What chooses the next task and its device: the framework's own line (line.hpp), made of an order,
// a placement and a fairness, or a plug-in (plugin.hpp). The Scheduler keeps everything else: what
// occupies devices, what was measured, evictions.
#pragma once

#include <memory>
#include <optional>

#include "devices/policy/estimates.hpp"
#include "devices/policy/ledger.hpp"
#include "devices/policy/placement.hpp"

namespace amasia::devices::policy {

struct Choice {
  TaskKey task;
  DeviceId device;
};

// What a chooser may look at, valid during the call.
struct Sight {
  const Ledger& ledger;
  const Estimates& estimates;
  const BusyUntil& busy;
  Nanos now = 0;

  bool fits(const TaskDescription& task, DeviceId device) const {
    return ledger.fits(task, device, ledger.takes_brief(device)
                                         ? estimates.keeps(task, device).value_or(0)
                                         : Nanos{0});
  }
  bool fits_as_guest(const TaskDescription& task, DeviceId device) const {
    return ledger.fits_as_guest(task, device, estimates.keeps(task, device).value_or(0));
  }
};

class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual void set_weight(ClientId client, double weight) = 0;
  virtual void remove_client(ClientId client) = 0;
  virtual void add_device(DeviceId device, const DeviceDescription& description) = 0;
  // `possible`: on which devices the task can ever run, not empty.
  virtual void put(const TaskDescription& task, DeviceSet possible) = 0;
  // The task leaves the line: chosen, or withdrawn.
  virtual void remove(TaskKey task) = 0;
  // A task that was put and not removed, and a device where it fits; or none. The caller starts it,
  // and then calls remove(), and, when it ended, ended().
  virtual std::optional<Choice> next(const Sight& sight) = 0;
  virtual void started(const TaskDescription& task, DeviceId device) = 0;
  virtual void ended(const TaskDescription& task, const TaskEnd& end) = 0;
  // One that was never put has run, and has ended.
  virtual void ran(const TaskDescription&, const TaskEnd&, const DeviceTerms&) {}
  // When next() may answer otherwise although nothing happens; negative: never.
  virtual Nanos ask_again_at() const = 0;
};

}  // namespace amasia::devices::policy
