// SPDX-License-Identifier: Apache-2.0
// What amasia-deviced says of itself, as `amasia devices` and `amasia top` show it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "devices/devices.hpp"

namespace amasia::tools {

struct NodeDevice {
  devices::DeviceDescription description;
  bool known_to_daemon = false;
  std::uint32_t clients = 0, running = 0;
  std::uint64_t finished = 0;
  Bytes resident = 0;
  Nanos busy = 0;  // of kernels, since the daemon began
};
struct NodeClient {
  std::uint32_t client = 0;
  std::int32_t process = 0;
  std::string program;
  std::uint32_t queued = 0, running = 0;
  std::uint64_t finished = 0, failed = 0;
  Bytes resident = 0;
  bool stopped = false;  // by a signal or a debugger, while others waited for what it holds
};
struct NodeDevices {
  std::int32_t process = 0;  // of the daemon
  std::string policy;
  Nanos now = 0;
  bool draining = false;
  std::vector<NodeDevice> devices;
  std::vector<NodeClient> clients;
};

// The daemon's answer (docs/protocols/devices.md). Errors say what is wrong.
Result<NodeDevices> parse_node_devices(std::string_view text);

// What this process sees, with what the daemon says of the same device, and devices that only the
// daemon knows.
std::vector<NodeDevice> merged(const std::vector<devices::DeviceDescription>& seen,
                               const NodeDevices* daemon);

// One line for each device. `daemon` may be nullptr: none runs.
std::string devices_text(const std::vector<NodeDevice>& devices, const NodeDevices* daemon);
// All parts that a policy can be made of.
std::string policies_text();
// Utilisation is that between two answers; with one answer it is left out.
std::string top_text(const NodeDevices& now, const NodeDevices* before);

}  // namespace amasia::tools
