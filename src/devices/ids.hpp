// SPDX-License-Identifier: Apache-2.0
// The vocabulary that clients, daemon, policies and back ends share. Plain values.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string>

#include "base/base.hpp"

namespace amasia::devices {

// A device of the node, numbered by the daemon in the order in which clients announced them. Where
// there are kMaxDevices, one that no client has any more gives its number to a new one. A set of
// devices is a bit mask, which bounds a node.
using DeviceId = base::Id<struct DeviceTag, std::uint16_t>;
inline constexpr std::uint32_t kMaxDevices = 64;
using DeviceSet = std::uint64_t;
constexpr DeviceSet set_of(DeviceId device) { return DeviceSet{1} << device.value; }
constexpr bool contains(DeviceSet set, DeviceId device) { return (set >> device.value & 1) != 0; }

// A connection to the daemon; never reused while the daemon lives.
using ClientId = base::Id<struct ClientTag, std::uint32_t>;

// A task or a resident buffer, numbered by its client from 1. On the node it is known by both.
struct TaskKey {
  ClientId client;
  std::uint64_t task = 0;
  friend constexpr auto operator<=>(const TaskKey&, const TaskKey&) = default;
};
struct BufferKey {
  ClientId client;
  std::uint64_t buffer = 0;  // 0: not resident
  friend constexpr auto operator<=>(const BufferKey&, const BufferKey&) = default;
};

enum class DeviceClass : std::uint8_t { kCpu = 0, kGpu = 1, kAccelerator = 2 };
inline constexpr unsigned kDeviceClasses = 3;
// A set of classes: bit i is class i.
using ClassSet = std::uint8_t;
inline constexpr ClassSet kAnyClass = (1U << kDeviceClasses) - 1;
constexpr ClassSet set_of(DeviceClass device_class) {
  return static_cast<ClassSet>(1U << static_cast<unsigned>(device_class));
}
const char* name_of(DeviceClass device_class);

// How a task uses an argument. Bits.
enum class Access : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kReadWrite = 3 };
constexpr bool reads(Access access) { return (static_cast<unsigned>(access) & 1U) != 0; }
constexpr bool writes(Access access) { return (static_cast<unsigned>(access) & 2U) != 0; }

// What a back end says of a device, and what the daemon and its policies know of it.
struct DeviceDescription {
  // The same in every process that sees this device, and of no other device of the node, such as
  // "host", "opencl/Portable Computing Language/pthread-haswell/0", "pci/0000:65:00.0" (however it
  // is reached). At most kMaxIdentity bytes.
  std::string identity;
  std::string pci;       // its address on the bus, "0000:65:00.0", where it is known; else ""
  std::string name;      // for people
  std::string vendor;
  std::string platform;  // "OpenCL 3.0 PoCL 3.1", "CUDA 12.4", "host"
  std::string backend;   // "host", "opencl", "cuda": the back end's registered name
  DeviceClass device_class = DeviceClass::kCpu;
  std::uint32_t compute_units = 1;
  std::uint32_t max_dimensions = 3;
  std::uint64_t max_work_group = 1;                    // work-items
  std::uint64_t max_work_sizes[3] = {1, 1, 1};         // work-items of a group in each dimension
  Bytes memory = 0;                                    // that buffers may take; 0: unknown
  Bytes max_allocation = 0;                            // of one buffer; 0: as memory
  bool shares_host_memory = false;                     // buffers may alias host memory: no copies
  // Tasks that it pays to have granted at once, so that it never waits for the next.
  std::uint32_t queue_depth = 2;
};
inline constexpr std::size_t kMaxIdentity = 255;

}  // namespace amasia::devices
