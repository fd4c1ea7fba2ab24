// SPDX-License-Identifier: Apache-2.0
// What the framework reckons with: devices as the policies see them, and what a client may have.
#pragma once

#include <algorithm>
#include <cstdint>

#include "devices/ids.hpp"
#include "devices/policy/policy.hpp"

namespace amasia::devices::policy {

// Of a device that does not say. Sums of two such do not wrap.
inline constexpr Bytes kUnknownMemory = UINT64_MAX / 4;

struct DeviceTerms {
  DeviceClass device_class = DeviceClass::kCpu;
  std::uint64_t elements = 1;     // processing elements, > 0
  Bytes memory = kUnknownMemory;  // what tasks may use of it, at most kUnknownMemory
  // How many tasks may be in flight, > 0. Two always may, whatever elements they ask for, so that
  // one's copies overlap with the other's run.
  std::uint32_t depth = 2;
  // A device that has only brief tasks in flight takes more of them than its depth and its elements
  // allow, so that it need not wait for the daemon after each: until what they take together is
  // this long. Brief: known to take at most a quarter of it. 0: none.
  Nanos ahead = 2 * base::kMillisecond;
  // How long a client keeps the device to itself, by the clock, while it has tasks queued for it
  // and others have, too. 0: they take turns task by task.
  Nanos turn = 0;
  // Until copies were measured: how long one takes beyond its bytes, and bytes per second.
  Nanos copy_latency = 10 * base::kMicrosecond;
  double copy_bytes_per_s = 10e9;
};

// A compute unit of a GPU keeps this many work items at once (CUDA and CDNA alike); one of a CPU is
// a core, which a work group keeps busy.
inline constexpr std::uint64_t kElementsOfGpuUnit = 2048;

// Kernels of all that a CPU is given run at once, as its cores are shared by the system: who comes
// next does not wait for those ahead of it, so there may be more of them.
inline constexpr Nanos kAheadOfCpu = 8 * base::kMillisecond;

// A GPU runs the kernels of one process at a time, and to go on with another's costs as much as
// several brief ones.
inline constexpr Nanos kTurnOnGpu = 2 * base::kMillisecond;

inline DeviceTerms terms_of(const DeviceDescription& device) {
  DeviceTerms out;
  out.device_class = device.device_class;
  const std::uint64_t of_unit = device.device_class == DeviceClass::kGpu ? kElementsOfGpuUnit : 1;
  out.elements = std::max<std::uint64_t>(1, device.compute_units) * of_unit;
  if (device.memory != 0) out.memory = std::min(device.memory, kUnknownMemory);
  out.depth = std::max<std::uint32_t>(1, device.queue_depth);
  if (device.device_class == DeviceClass::kCpu) out.ahead = kAheadOfCpu;
  if (device.device_class == DeviceClass::kGpu) out.turn = kTurnOnGpu;
  // One that shares the host's memory copies nothing.
  if (device.shares_host_memory) {
    out.copy_latency = 0;
    out.copy_bytes_per_s = 1e15;
  }
  return out;
}

// What of a device's elements a task takes: one a work item, at most all.
inline std::uint64_t elements_of(const TaskDescription& task, const DeviceTerms& device) {
  return std::clamp<std::uint64_t>(task.work_items, 1, device.elements);
}

// What part of the device's time a task takes while it runs.
inline double share_of(const TaskDescription& task, const DeviceTerms& device) {
  const double elements = static_cast<double>(elements_of(task, device));
  return std::max(elements / static_cast<double>(device.elements), 1.0 / device.depth);
}

// Tasks that may be one run.
inline constexpr std::uint32_t kRunMost = 64;

// Tasks that a device may have in flight where they are brief.
inline constexpr std::uint32_t kAheadMost = 64;
// And guests beside them (ledger.hpp).
inline constexpr std::uint32_t kGuestsMost = 16;
// `expected`: what the kernel takes on that device, 0 where that is not known.
inline bool is_brief(Nanos expected, const DeviceTerms& device) {
  return expected > 0 && expected <= device.ahead / 4;
}

// What a client may have.
struct ClientTerms {
  double weight = 1;                         // its part of the devices' time, against others'
  std::uint32_t in_flight_max = UINT32_MAX;  // tasks, on all devices together, > 0
  Bytes bytes_max = UINT64_MAX;              // on each device
};

}  // namespace amasia::devices::policy
