// SPDX-License-Identifier: Apache-2.0
#include "tools/node_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace amasia::tools {
namespace {

using Json = nlohmann::json;
using Output = std::back_insert_iterator<std::string>;

// Numbers of another version's daemon may be missing: then they are 0.
template <typename Number>
void read(const Json& object, const char* key, Number& out) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number_integer()) out = found->template get<Number>();
}
void read(const Json& object, const char* key, std::string& out) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_string()) out = found->get<std::string>();
}

NodeDevice device_of(const Json& object) {
  NodeDevice out;
  out.known_to_daemon = true;
  devices::DeviceDescription& about = out.description;
  read(object, "identity", about.identity);
  read(object, "name", about.name);
  read(object, "vendor", about.vendor);
  read(object, "platform", about.platform);
  read(object, "backend", about.backend);
  std::string device_class;
  read(object, "class", device_class);
  for (unsigned i = 0; i < devices::kDeviceClasses; ++i) {
    const auto one = static_cast<devices::DeviceClass>(i);
    if (device_class == devices::name_of(one)) about.device_class = one;
  }
  read(object, "compute_units", about.compute_units);
  read(object, "memory", about.memory);
  read(object, "queue_depth", about.queue_depth);
  read(object, "clients", out.clients);
  read(object, "running", out.running);
  read(object, "finished", out.finished);
  read(object, "resident", out.resident);
  read(object, "busy_ns", out.busy);
  return out;
}

NodeClient client_of(const Json& object) {
  NodeClient out;
  read(object, "client", out.client);
  read(object, "process", out.process);
  read(object, "program", out.program);
  read(object, "queued", out.queued);
  read(object, "running", out.running);
  read(object, "finished", out.finished);
  read(object, "failed", out.failed);
  read(object, "resident", out.resident);
  const auto stopped = object.find("stopped");
  out.stopped = stopped != object.end() && stopped->is_boolean() && stopped->get<bool>();
  return out;
}

// Names come from drivers and programs: nothing in them moves a terminal's cursor.
std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  for (const char c : text.substr(0, most)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out;
}

// Of `until`, drawn in `width` characters.
std::string bar(double part, std::size_t width) {
  const auto full = static_cast<std::size_t>(
      std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(width)));
  return std::string(full, '#') + std::string(width - full, '.');
}

std::string memory_text(const devices::DeviceDescription& about) {
  return about.memory == 0 ? "-" : base::volume_text(about.memory);
}

std::string daemon_text(const NodeDevices& daemon) {
  return fmt::format("amasia-deviced {}, policy {}, {} {}{}\n", daemon.process,
                     printable(daemon.policy, 64), daemon.clients.size(),
                     daemon.clients.size() == 1 ? "client" : "clients",
                     daemon.draining ? ", draining: it takes no more tasks" : "");
}

}  // namespace

Result<NodeDevices> parse_node_devices(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{"the daemon's answer is not a JSON object", 0};
  NodeDevices out;
  read(json, "process", out.process);
  read(json, "policy", out.policy);
  read(json, "now_ns", out.now);
  const auto draining = json.find("draining");
  out.draining = draining != json.end() && draining->is_boolean() && draining->get<bool>();
  for (const char* const key : {"devices", "clients"}) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array()) {
      return Error{fmt::format("the daemon's answer has no list '{}'", key), 0};
    }
    for (const Json& one : *list) {
      if (!one.is_object()) {
        return Error{fmt::format("the daemon's answer has in '{}' what is no object", key), 0};
      }
      if (key == std::string_view("devices")) {
        out.devices.push_back(device_of(one));
      } else {
        // Who looks on, such as this process, announces no devices.
        const auto of_client = one.find("devices");
        const bool looks_on = of_client != one.end() && of_client->is_array() && of_client->empty();
        if (!looks_on) out.clients.push_back(client_of(one));
      }
    }
  }
  return out;
}

std::vector<NodeDevice> merged(const std::vector<devices::DeviceDescription>& seen,
                               const NodeDevices* daemon) {
  std::vector<NodeDevice> out;
  if (daemon != nullptr) out = daemon->devices;
  for (const devices::DeviceDescription& one : seen) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const NodeDevice& other) {
      return other.description.identity == one.identity;
    });
    if (known) continue;
    NodeDevice device;
    device.description = one;
    out.push_back(std::move(device));
  }
  return out;
}

std::string devices_text(const std::vector<NodeDevice>& devices, const NodeDevices* daemon) {
  std::string out;
  fmt::format_to(Output(out), "{:>3} {:<11} {:<12} {:<32} {:>6} {:>11} {:>8} {:>11}\n", "", "class",
                 "backend", "name", "units", "memory", "running", "resident");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const NodeDevice& device = devices[i];
    const devices::DeviceDescription& about = device.description;
    const bool known = device.known_to_daemon;
    fmt::format_to(Output(out), "{:>3} {:<11} {:<12} {:<32} {:>6} {:>11} {:>8} {:>11}\n", i,
                   devices::name_of(about.device_class), printable(about.backend, 12),
                   printable(about.name, 32), about.compute_units, memory_text(about),
                   known ? fmt::format("{}/{}", device.running, about.queue_depth) : "-",
                   known ? base::volume_text(device.resident) : "-");
  }
  out += '\n';
  out += daemon != nullptr ? daemon_text(*daemon)
                           : "no daemon runs; the first program that uses devices starts one\n";
  return out;
}

std::string policies_text() {
  std::string out =
      "A policy is made of parts, named with '+' between them; what is not named is the default.\n";
  std::string_view kind;
  for (const devices::PolicyPart& part : devices::policy_parts()) {
    if (part.kind != kind) fmt::format_to(Output(out), "\n{}\n", part.kind);
    kind = part.kind;
    fmt::format_to(Output(out), "  {:<16} {}{}\n", part.name, part.description,
                   part.is_default ? " (default)" : "");
  }
  out +=
      "\nexample: amasia-deviced --policy priority+earliest-finish+cost\n"
      "A file with a '/' in its name is a policy of your own: amasia/device_policy.h says how.\n";
  return out;
}

std::string top_text(const NodeDevices& now, const NodeDevices* before) {
  std::string out = daemon_text(now) + '\n';
  fmt::format_to(Output(out), "{:>3} {:<30} {:<11} {:>8} {:>10} {:>11}  {}\n", "", "device",
                 "class", "running", "finished", "resident", "utilisation");
  for (std::size_t i = 0; i < now.devices.size(); ++i) {
    const NodeDevice& device = now.devices[i];
    std::string busy = "-";
    if (before != nullptr && before->process == now.process && i < before->devices.size() &&
        now.now > before->now) {
      const double part = static_cast<double>(device.busy - before->devices[i].busy) /
                          static_cast<double>(now.now - before->now);
      // Kernels that run at once on one device may make more than all of the time.
      busy = fmt::format("{} {:>4.0f} %", bar(part, 20), 100 * std::clamp(part, 0.0, 1.0));
    }
    fmt::format_to(Output(out), "{:>3} {:<30} {:<11} {:>8} {:>10} {:>11}  {}\n", i,
                   printable(device.description.name, 30),
                   devices::name_of(device.description.device_class),
                   fmt::format("{}/{}", device.running, device.description.queue_depth),
                   device.finished, base::volume_text(device.resident), busy);
  }
  fmt::format_to(Output(out), "\n{:>8} {:<30} {:>8} {:>8} {:>10} {:>8} {:>11}\n", "process",
                 "program", "queued", "running", "finished", "failed", "resident");
  std::vector<NodeClient> clients = now.clients;
  std::sort(clients.begin(), clients.end(), [](const NodeClient& a, const NodeClient& b) {
    const std::uint64_t of_a = std::uint64_t{a.running} + a.queued;
    const std::uint64_t of_b = std::uint64_t{b.running} + b.queued;
    return of_a != of_b ? of_a > of_b : a.client < b.client;
  });
  for (const NodeClient& client : clients) {
    fmt::format_to(Output(out), "{:>8} {:<30} {:>8} {:>8} {:>10} {:>8} {:>11}\n", client.process,
                   printable(client.program, 20) + (client.stopped ? " (stopped)" : ""),
                   client.queued, client.running, client.finished,
                   client.failed, base::volume_text(client.resident));
  }
  return out;
}

}  // namespace amasia::tools
