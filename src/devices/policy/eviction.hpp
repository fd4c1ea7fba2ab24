// SPDX-License-Identifier: Apache-2.0
// Which copies of resident buffers leave a device when a task needs the room. An eviction policy is
// a file, eviction_<name>.cpp, and a line in registry.cpp.
//
// Copies that are out of date go first whatever the policy: nothing is lost with them.
#pragma once

#include <string_view>
#include <vector>

#include "devices/policy/estimates.hpp"
#include "devices/policy/ledger.hpp"

namespace amasia::devices::policy {

struct EvictionPolicy {
  std::string_view name, description;
  // A task was started that uses the copy; `reload` is what having it again would take.
  void (*touch)(Copy& copy, const DeviceUse& device, Nanos reload);
  // Of two, the one that is worth less goes. `next_use`: the place in the line of the first queued
  // task that reads it, counted from 1; 0: none does.
  double (*worth)(const Copy& copy, std::uint64_t next_use);
  // A copy went, worth `worth`.
  void (*went)(DeviceUse& device, double worth);
};

extern const EvictionPolicy kLruEviction;
extern const EvictionPolicy kCostEviction;

// The copies to give up on `device` so that `task` can start there: none of the task's own, none
// pinned, and none that need not go. What the task needs must be there to be had (Ledger::fits).
// `next_use`: as EvictionPolicy::worth has it, of a buffer.
std::vector<BufferKey> victims(const EvictionPolicy& policy, Ledger& ledger,
                               const TaskDescription& task, DeviceId device,
                               std::uint64_t (*next_use)(const void*, BufferKey),
                               const void* context);

}  // namespace amasia::devices::policy
