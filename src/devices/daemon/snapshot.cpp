// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "devices/trace/trace.hpp"
#include "devices/wire/packets.hpp"

namespace amasia::devices {
namespace {

using base::json_text;

std::string device_text(std::size_t number, const DeviceState& device) {
  const DeviceDescription& about = device.description;
  return fmt::format(
      R"({{"device":{},"identity":{},"name":{},"vendor":{},"platform":{},"backend":{},)"
      R"("class":"{}","compute_units":{},"memory":{},"queue_depth":{},"clients":{},)"
      R"("running":{},"finished":{},"resident":{},"busy_ns":{}}})",
      number, json_text(about.identity), json_text(about.name), json_text(about.vendor),
      json_text(about.platform), json_text(about.backend), name_of(about.device_class),
      about.compute_units, about.memory, about.queue_depth, device.clients, device.granted,
      device.finished, device.resident, device.busy);
}

std::string client_text(ClientId id, const ClientState& client) {
  std::string devices, running;
  std::vector<DeviceId> once;  // that the client reaches in several ways, too
  for (const DeviceId device : client.devices) {
    if (device == kNoDevice) continue;
    if (std::find(once.begin(), once.end(), device) == once.end()) once.push_back(device);
  }
  for (const DeviceId device : once) {
    devices += fmt::format("{}{}", devices.empty() ? "" : ",", device.value);
  }
  std::vector<std::uint32_t> on(kMaxDevices);
  for (const auto& [number, task] : client.tasks) {
    if (task.granted) ++on[task.device.value];
  }
  for (const DeviceId device : once) {
    running += fmt::format("{}{}", running.empty() ? "" : ",", on[device.value]);
  }
  return fmt::format(R"({{"client":{},"process":{},"program":{},"queued":{},"running":{},)"
                     R"("stopped":{},"finished":{},"failed":{},"resident":{},"devices":[{}],)"
                     R"("running_on":[{}]}})",
                     id.value, client.process, json_text(client.program), client.queued,
                     client.granted, client.suspended, client.finished, client.failed,
                     client.resident, devices, running);
}

}  // namespace

std::string snapshot_of(const DaemonState& state, Nanos now, std::int32_t process) {
  std::string devices, clients;
  for (std::size_t i = 0; i < state.devices().size(); ++i) {
    devices += (i == 0 ? "" : ",") + device_text(i, state.devices()[i]);
  }
  for (const auto& [id, client] : state.clients()) {
    clients += (clients.empty() ? "" : ",") + client_text(id, client);
  }
  return fmt::format(R"({{"version":{},"process":{},"policy":{},"now_ns":{},"draining":{},)"
                     R"("devices":[{}],"clients":[{}]}})",
                     kProtocolVersion, process, json_text(state.policy().name()), now,
                     state.draining() ? "true" : "false", devices, clients);
}

}  // namespace amasia::devices
