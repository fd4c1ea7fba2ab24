// SPDX-License-Identifier: Apache-2.0
// Who looks on: asks a daemon for its state, without being a client.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "devices/ids.hpp"

namespace amasia::devices {

class Link;

// The devices that a program started with this environment would have (AMASIA_DEVICES_BACKENDS), in
// its order, each once. Loads drivers; blocks while they look for hardware.
std::vector<DeviceDescription> devices_here();

class Observer {
 public:
  // Connects to the daemon at `path` ("": the user's own); never starts one. The error's code is
  // ECONNREFUSED or ENOENT where none runs, else as Link::open has it.
  static Result<std::unique_ptr<Observer>> open(const std::string& path);
  ~Observer();

  // The daemon's state as JSON (docs/protocols/devices.md). Waits at most ten seconds. An error
  // means that the daemon has gone, or is stopped.
  Result<std::string> snapshot();

 private:
  explicit Observer(std::unique_ptr<Link> link);

  std::unique_ptr<Link> link_;
  std::uint32_t requests_ = 0;
};

}  // namespace amasia::devices
