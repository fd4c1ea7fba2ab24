// SPDX-License-Identifier: Apache-2.0
#include "devices/wire/packets.hpp"

#include <algorithm>

namespace amasia::devices {

DevicePacket packet_of(const DeviceDescription& device) {
  DevicePacket packet;
  set_text(packet.identity, device.identity);
  set_text(packet.name, device.name);
  set_text(packet.vendor, device.vendor);
  set_text(packet.platform, device.platform);
  set_text(packet.backend, device.backend);
  packet.device_class = static_cast<std::uint32_t>(device.device_class);
  packet.compute_units = device.compute_units;
  packet.max_dimensions = device.max_dimensions;
  packet.queue_depth = device.queue_depth;
  packet.max_work_group = device.max_work_group;
  std::copy(std::begin(device.max_work_sizes), std::end(device.max_work_sizes),
            std::begin(packet.max_work_sizes));
  packet.memory = device.memory;
  packet.max_allocation = device.max_allocation;
  packet.shares_host_memory = device.shares_host_memory ? 1 : 0;
  return packet;
}

Result<DeviceDescription> description_of(const DevicePacket& packet) {
  DeviceDescription device;
  device.identity = text_of(packet.identity);
  if (device.identity.empty()) return Error{"a device without an identity was announced"};
  if (packet.device_class >= kDeviceClasses) {
    return Error{fmt::format("device {} has class {} (allowed: 0 … {})",
                             base::json_text(device.identity), packet.device_class,
                             kDeviceClasses - 1)};
  }
  constexpr std::uint32_t kMaxDepth = 1024;
  if (packet.queue_depth == 0 || packet.queue_depth > kMaxDepth) {
    return Error{fmt::format("device {} has a queue of {} tasks (allowed: 1 … {})",
                             base::json_text(device.identity), packet.queue_depth, kMaxDepth)};
  }
  device.name = text_of(packet.name);
  device.vendor = text_of(packet.vendor);
  device.platform = text_of(packet.platform);
  device.backend = text_of(packet.backend);
  device.device_class = static_cast<DeviceClass>(packet.device_class);
  device.compute_units = packet.compute_units;
  device.max_dimensions = packet.max_dimensions;
  device.queue_depth = packet.queue_depth;
  device.max_work_group = packet.max_work_group;
  std::copy(std::begin(packet.max_work_sizes), std::end(packet.max_work_sizes),
            std::begin(device.max_work_sizes));
  device.memory = packet.memory;
  device.max_allocation = packet.max_allocation;
  device.shares_host_memory = packet.shares_host_memory != 0;
  return device;
}

}  // namespace amasia::devices
