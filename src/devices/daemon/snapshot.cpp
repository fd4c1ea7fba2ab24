// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/snapshot.hpp"


#include <fmt/format.h>

#include <vector>

#include "devices/wire/packets.hpp"

namespace amasia::devices {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string device_text(std::size_t number, const DeviceState& device) {
  const DeviceDescription& about = device.description;
  return fmt::format(
      R"({{"device":{},"identity":{},"name":{},"vendor":{},"platform":{},"backend":{},)"
      R"("class":"{}","compute_units":{},"memory":{},"queue_depth":{},"clients":{},)"
      R"("running":{},"finished":{},"resident":{},"busy_ns":{}}})",
      number, json_string(about.identity), json_string(about.name), json_string(about.vendor),
      json_string(about.platform), json_string(about.backend), name_of(about.device_class),
      about.compute_units, about.memory, about.queue_depth, device.clients, device.granted,
      device.finished, device.resident, device.busy);
}

std::string client_text(ClientId id, const ClientState& client) {
  std::string devices, running;
  for (const DeviceId device : client.devices) {
    devices += fmt::format("{}{}", devices.empty() ? "" : ",", device.value);
  }
  std::vector<std::uint32_t> on(kMaxDevices);
  for (const auto& [number, task] : client.tasks) {
    if (task.granted) ++on[task.device.value];
  }
  for (const DeviceId device : client.devices) {
    running += fmt::format("{}{}", running.empty() ? "" : ",", on[device.value]);
  }
  return fmt::format(R"({{"client":{},"process":{},"program":{},"queued":{},"running":{},)"
                     R"("finished":{},"failed":{},"resident":{},"devices":[{}],)"
                     R"("running_on":[{}]}})",
                     id.value, client.process, json_string(client.program), client.queued,
                     client.granted, client.finished, client.failed, client.resident, devices,
                     running);
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
                     kProtocolVersion, process, json_string(state.policy().name()), now,
                     state.draining() ? "true" : "false", devices, clients);
}

}  // namespace amasia::devices
