// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/ledger.hpp"

#include <algorithm>

namespace amasia::devices::policy {
namespace {

// So many tasks may be in flight whatever elements they ask for: one copies, one runs.
constexpr std::uint32_t kOverlap = 2;

BufferKey key_of(const TaskDescription& task, const TaskArgument& argument) {
  return {task.key.client, argument.buffer};
}

// Sizes are what a client says: added so that they cannot wrap.
Bytes memory_of(const TaskDescription& task) {
  Bytes out = task.temporary;
  for (const TaskArgument& argument : task.resident) {
    out = argument.size > UINT64_MAX - out ? UINT64_MAX : out + argument.size;
  }
  return out;
}

}  // namespace

void Ledger::add_device(const DeviceTerms& terms) {
  AMASIA_CHECK(devices_.size() < kMaxDevices, "a set of devices is a mask of 64 bits");
  AMASIA_CHECK(terms.depth > 0 && terms.elements > 0, "such a device runs nothing");
  const DeviceId id(static_cast<std::uint16_t>(devices_.size()));
  devices_.emplace_back().terms = terms;
  for (auto& [key, client] : clients_) {
    client.used.push_back(0);
    client.pinned.push_back(0);
    client.limit.push_back(UINT64_MAX);
  }
  all_ |= set_of(id);
  update_open(id);
}

void Ledger::change_device(DeviceId id, const DeviceTerms& terms) {
  DeviceUse& device = devices_[id.value];
  if (device.in_flight + device.aside == 0 && device.used == 0) {
    device.terms = terms;
    device.evicted_credit = 0;
  } else {
    device.terms.memory = std::max(device.terms.memory, terms.memory);
  }
  update_open(id);
}

void Ledger::remove_client(ClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  AMASIA_CHECK(found->second.in_flight == 0, "the client's tasks were finished");
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    for (auto copy = devices_[i].copies.begin(); copy != devices_[i].copies.end();) {
      const auto here = copy++;
      if (here->first.client == client) erase(i, here);
    }
  }
  clients_.erase(found);
}

const ClientUse* Ledger::client(ClientId id) const {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : &found->second;
}

ClientUse& Ledger::client_use(ClientId id) {
  ClientUse& use = clients_[id];
  use.used.resize(devices_.size());
  use.pinned.resize(devices_.size());
  use.limit.resize(devices_.size(), UINT64_MAX);
  return use;
}

void Ledger::update_open(DeviceId id) {
  const DeviceUse& device = devices_[id.value];
  const bool elements = device.in_flight < kOverlap || device.elements < device.terms.elements;
  const bool open = (device.in_flight < device.terms.depth && elements) || takes_brief(id);
  open_ = open ? open_ | set_of(id) : open_ & ~set_of(id);
  const bool hosts = device.terms.ahead > 0 && device.over < kGuestsMost;
  hosts_ = hosts ? hosts_ | set_of(id) : hosts_ & ~set_of(id);
  const bool is_cpu = device.terms.device_class == DeviceClass::kCpu;
  cpus_ = is_cpu ? cpus_ | set_of(id) : cpus_ & ~set_of(id);
}

DeviceSet Ledger::possible(const TaskDescription& task) const {
  const Bytes all = memory_of(task);
  const ClientUse* client = this->client(task.key.client);
  DeviceSet out = 0;
  for (std::uint16_t i = 0; i < devices_.size(); ++i) {
    const DeviceId id(i);
    const bool granted = client == nullptr || all <= client->most(id);
    if (granted && all <= devices_[i].terms.memory) out |= set_of(id);
  }
  return out & task.allowed;
}

Bytes Ledger::unpinned_of(const TaskDescription& task, const DeviceUse& device) const {
  Bytes out = task.temporary;
  for (const TaskArgument& argument : task.resident) {
    const auto copy = device.copies.find(key_of(task, argument));
    if (copy == device.copies.end()) {
      out += argument.size;
    } else if (copy->second.pins == 0) {
      out += copy->second.bytes;
    }
  }
  return out;
}

bool Ledger::within_quota(ClientId id) const {
  const ClientUse* client = this->client(id);
  return client == nullptr || client->in_flight < client->terms.in_flight_max;
}

bool Ledger::takes_brief(DeviceId id) const {
  const DeviceUse& device = devices_[id.value];
  if (device.in_flight == 0 || device.brief != device.in_flight) return false;
  // Another one like those there fits, else a whole line would be looked through for a briefer one.
  const Nanos usual = device.ahead / device.in_flight;
  return device.in_flight < kAheadMost && device.ahead + usual <= device.terms.ahead;
}

bool Ledger::has_none(ClientId id) const {
  const ClientUse* client = this->client(id);
  return client == nullptr || client->in_flight == 0;
}

bool Ledger::has_room(const TaskDescription& task, DeviceId id, Nanos expected) const {
  const DeviceUse& device = devices_[id.value];
  const bool in_depth = device.in_flight < device.terms.depth;
  const bool has_elements =
      device.in_flight < kOverlap ||
      device.elements + elements_of(task, device.terms) <= device.terms.elements;
  const bool ahead = takes_brief(id) && is_brief(expected, device.terms) &&
                     device.ahead + expected <= device.terms.ahead;
  return (in_depth && has_elements) || ahead;
}

bool Ledger::has_memory(const TaskDescription& task, DeviceId id) const {
  const DeviceUse& device = devices_[id.value];
  const Bytes more = unpinned_of(task, device);
  if (more > device.terms.memory - device.pinned) return false;
  const ClientUse* client = this->client(task.key.client);
  if (client == nullptr) return true;
  const Bytes most = client->most(id), pinned = client->pinned[id.value];
  return client->in_flight < client->terms.in_flight_max && pinned <= most &&
         more <= most - pinned;
}

bool Ledger::fits(const TaskDescription& task, DeviceId id, Nanos expected) const {
  return has_room(task, id, expected) && has_memory(task, id);
}

bool Ledger::fits_as_guest(const TaskDescription& task, DeviceId id, Nanos expected) const {
  const bool may_be_long = (task.allowed & all_ & ~cpus_) == 0;
  return contains(hosts_, id) && (may_be_long || is_brief(expected, devices_[id.value].terms)) &&
         has_none(task.key.client) && has_memory(task, id);
}

Bytes Ledger::present(const TaskDescription& task, DeviceId id) const {
  const DeviceUse& device = devices_[id.value];
  Bytes out = 0;
  for (const TaskArgument& argument : task.resident) {
    if (!reads(argument.access)) continue;
    const auto copy = device.copies.find(key_of(task, argument));
    if (copy != device.copies.end() && copy->second.valid) out += argument.size;
  }
  return out;
}

Bytes Ledger::missing(const TaskDescription& task, DeviceId id) const {
  Bytes out = task.temporary;
  for (const TaskArgument& argument : task.resident) {
    if (reads(argument.access)) out += argument.size;
  }
  return out - present(task, id);
}

Ledger::Need Ledger::need(const TaskDescription& task, DeviceId id) const {
  const DeviceUse& device = devices_[id.value];
  Bytes more = task.temporary;
  for (const TaskArgument& argument : task.resident) {
    if (!device.copies.contains(key_of(task, argument))) more += argument.size;
  }
  Need out;
  const Bytes all = device.used + more;
  out.of_any = all > device.terms.memory ? all - device.terms.memory : 0;
  if (const ClientUse* client = this->client(task.key.client);
      client != nullptr && client->most(id) < device.terms.memory) {
    const Bytes after = client->used[id.value] + more;
    out.of_client = after > client->most(id) ? after - client->most(id) : 0;
  }
  return out;
}

bool Ledger::takes_memory(const TaskDescription& task, DeviceId id) const {
  const DeviceUse& device = devices_[id.value];
  if (task.temporary > 0) return true;
  return std::any_of(task.resident.begin(), task.resident.end(), [&](const TaskArgument& use) {
    const auto copy = device.copies.find(key_of(task, use));
    return copy == device.copies.end() || !copy->second.there;
  });
}

void Ledger::erase(std::size_t index, Copies::iterator copy) {
  DeviceUse& device = devices_[index];
  AMASIA_CHECK(copy->second.pins == 0, "memory that a task in flight uses cannot go");
  device.used -= copy->second.bytes;
  client_use(copy->first.client).used[index] -= copy->second.bytes;
  device.copies.erase(copy);
}

void Ledger::write(BufferKey buffer, DeviceId id) {
  for (std::uint16_t i = 0; i < devices_.size(); ++i) {
    const auto copy = devices_[i].copies.find(buffer);
    if (copy == devices_[i].copies.end()) continue;
    copy->second.valid = copy->second.dirty = i == id.value;
  }
}

void Ledger::occupy(const TaskDescription& task, DeviceId id, Nanos expected) {
  DeviceUse& device = devices_[id.value];
  ++device.in_flight;
  ++client_use(task.key.client).in_flight;
  device.elements += elements_of(task, device.terms);
  if (!is_brief(expected, device.terms)) return;
  ++device.brief;
  device.ahead += expected;
}

void Ledger::vacate(const TaskDescription& task, DeviceId id, Nanos expected) {
  DeviceUse& device = devices_[id.value];
  ClientUse& client = client_use(task.key.client);
  AMASIA_CHECK(device.in_flight > 0 && client.in_flight > 0, "the task is in flight");
  --device.in_flight;
  --client.in_flight;
  if (device.over > 0) --device.over;
  device.elements -= elements_of(task, device.terms);
  if (!is_brief(expected, device.terms)) return;
  AMASIA_CHECK(device.brief > 0 && device.ahead >= expected, "it was started as a brief one");
  --device.brief;
  device.ahead -= expected;
}

void Ledger::set_aside(const TaskDescription& task, DeviceId id, Nanos expected) {
  vacate(task, id, expected);
  ++devices_[id.value].aside;
  ++client_use(task.key.client).aside;
  update_open(id);
}

void Ledger::take_back(const TaskDescription& task, DeviceId id, Nanos expected) {
  occupy(task, id, expected);
  --devices_[id.value].aside;
  --client_use(task.key.client).aside;
  ++devices_[id.value].over;
  update_open(id);
}

void Ledger::start(const TaskDescription& task, DeviceId id, Nanos expected) {
  AMASIA_CHECK(fits(task, id, expected) || fits_as_guest(task, id, expected),
               "a task starts only where it fits");
  ++step_;
  DeviceUse& device = devices_[id.value];
  ClientUse& client = client_use(task.key.client);
  if (!has_room(task, id, expected)) ++device.over;
  occupy(task, id, expected);
  device.used += task.temporary;
  device.pinned += task.temporary;
  client.used[id.value] += task.temporary;
  client.pinned[id.value] += task.temporary;
  for (const TaskArgument& argument : task.resident) {
    const BufferKey key = key_of(task, argument);
    Copy& copy = book(key, id, argument.size);
    if (copy.pins++ == 0) {
      device.pinned += copy.bytes;
      client.pinned[id.value] += copy.bytes;
    }
    copy.used_at = step_;
    copy.doomed = false;
    copy.valid = copy.valid || reads(argument.access);
    if (writes(argument.access)) write(key, id);
  }
  update_open(id);
  AMASIA_CHECK(device.used <= device.terms.memory, "evictions made room before the start");
}

void Ledger::finish(const TaskDescription& task, DeviceId id, Nanos expected) {
  vacate(task, id, expected);
  DeviceUse& device = devices_[id.value];
  ClientUse& client = client_use(task.key.client);
  device.used -= task.temporary;
  device.pinned -= task.temporary;
  client.used[id.value] -= task.temporary;
  client.pinned[id.value] -= task.temporary;
  for (const TaskArgument& argument : task.resident) {
    const auto copy = device.copies.find(key_of(task, argument));
    AMASIA_CHECK(copy != device.copies.end() && copy->second.pins > 0, "the task pinned it");
    if (--copy->second.pins > 0) continue;
    device.pinned -= copy->second.bytes;
    client.pinned[id.value] -= copy->second.bytes;
    if (copy->second.doomed) erase(id.value, copy);
  }
  update_open(id);
}

void Ledger::bring(const TaskDescription& task, DeviceId id) {
  DeviceUse& device = devices_[id.value];
  for (const TaskArgument& argument : task.resident) {
    device.copies.at(key_of(task, argument)).there = true;
  }
}

void Ledger::withdraw(const TaskDescription& task, DeviceId id, Nanos expected) {
  finish(task, id, expected);
  DeviceUse& device = devices_[id.value];
  for (const TaskArgument& argument : task.resident) {
    const auto copy = device.copies.find(key_of(task, argument));
    if (copy == device.copies.end() || copy->second.there || copy->second.pins > 0) continue;
    erase(id.value, copy);
  }
}

Copy& Ledger::book(BufferKey buffer, DeviceId id, Bytes size) {
  DeviceUse& device = devices_[id.value];
  const auto [entry, added] = device.copies.try_emplace(buffer);
  Copy& copy = entry->second;
  if (!added) return copy;
  copy.bytes = size;
  copy.used_at = step_;
  device.used += size;
  client_use(buffer.client).used[id.value] += size;
  return copy;
}

void Ledger::place(BufferKey buffer, DeviceId id, Bytes size) {
  Copy& copy = book(buffer, id, size);
  copy.there = true;
  copy.doomed = false;  // it was dropped, and a task in flight made it anew
}

void Ledger::drop(BufferKey buffer, DeviceId id) {
  DeviceUse& device = devices_[id.value];
  const auto copy = device.copies.find(buffer);
  if (copy == device.copies.end()) return;
  if (copy->second.pins == 0) {
    erase(id.value, copy);
  } else {
    copy->second.doomed = true;
  }
}

bool Ledger::is_valid() const {
  std::vector<Bytes> of_clients(devices_.size());
  for (const auto& [id, client] : clients_) {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      of_clients[i] += client.used[i];
      if (client.pinned[i] > client.used[i]) return false;
      if (client.in_flight + client.aside == 0 && client.pinned[i] != 0) return false;
    }
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceUse& device = devices_[i];
    Bytes copies = 0, pinned = 0;
    for (const auto& [buffer, copy] : device.copies) {
      copies += copy.bytes;
      if (copy.pins > 0) pinned += copy.bytes;
      if (copy.pins == 0 && copy.doomed) return false;
    }
    // Temporaries are what is left over on both sides, and the same on both.
    if (device.used < copies || device.used - copies != device.pinned - pinned) return false;
    if (device.used != of_clients[i]) return false;
    if (device.used > device.terms.memory || device.brief > device.in_flight) return false;
    if (device.over == 0 && device.in_flight > device.terms.depth &&
        (device.brief != device.in_flight || device.in_flight > kAheadMost ||
         device.ahead > std::max<Nanos>(device.terms.ahead,
                                        device.terms.ahead / 4 * device.terms.depth))) {
      return false;
    }
    if (device.ahead < 0 || (device.brief == 0) != (device.ahead == 0)) return false;
    if (device.in_flight == 0 && device.elements != 0) return false;
    if (device.in_flight + device.aside == 0 && device.pinned != 0) return false;
  }
  return true;
}

}  // namespace amasia::devices::policy
