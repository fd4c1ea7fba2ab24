// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "devices/wire/packets.hpp"

namespace amasia::devices {
namespace {

constexpr unsigned kAllDevices = 0xff;  // ShortRecord::device of kDropped

// A set of the client's devices as the node's.
DeviceSet translate(const std::vector<DeviceId>& devices, std::uint64_t own) {
  DeviceSet set = 0;
  for (std::uint64_t left = own; left != 0; left &= left - 1) {
    const DeviceId device = devices[static_cast<std::size_t>(std::countr_zero(left))];
    if (device != kNoDevice) set |= set_of(device);
  }
  return set;
}

// The client's first number of the device, of those in `own`.
std::uint8_t own_number(const std::vector<DeviceId>& devices, DeviceId device,
                        std::uint64_t own = ~0ULL) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == device && (own >> i & 1) != 0) return static_cast<std::uint8_t>(i);
  }
  AMASIA_CHECK(false, "a client is told of a device that it does not have");
  return 0;
}

Bytes memory_of(const DeviceDescription& device) {
  return device.memory == 0 ? ~Bytes{0} : device.memory;
}

Bytes needed(const TaskDescription& task) {
  Bytes sum = task.temporary;
  for (const TaskArgument& argument : task.resident) {
    sum = sum + argument.size < sum ? ~Bytes{0} : sum + argument.size;
  }
  return sum;
}

}  // namespace

bool DaemonState::has_tasks() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& client) { return !client.second.tasks.empty(); });
}

bool DaemonState::has_queued() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& client) {
    return client.second.queued > 0 && !client.second.suspended;
  });
}

bool DaemonState::has_granted() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& client) {
    return client.second.granted > 0 && !client.second.suspended;
  });
}

bool DaemonState::has_suspended() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& client) { return client.second.suspended; });
}

bool DaemonState::keeps_others(ClientId id) const {
  return std::any_of(clients_.begin(), clients_.end(), [&](const auto& client) {
    return client.first != id && client.second.queued > 0 && !client.second.suspended;
  });
}

Urgency DaemonState::least_urgency(ClientId id) const {
  if (draining_) return Urgency::kNone;
  return keeps_others(id) ? Urgency::kOthers : Urgency::kOwn;
}

std::vector<ClientId> DaemonState::holding_up(Nanos then) const {
  std::vector<ClientId> out;
  for (const auto& [id, client] : clients_) {
    const bool holds = client.granted > 0 && (draining_ || keeps_others(id)) &&
                       std::any_of(client.tasks.begin(), client.tasks.end(), [&](const auto& one) {
                         return one.second.granted && one.second.granted_at < then;
                       });
    if (client.suspended || holds) out.push_back(id);
  }
  return out;
}

void DaemonState::suspend(ClientId id) {
  const auto client = clients_.find(id);
  if (client == clients_.end() || client->second.suspended) return;
  client->second.suspended = true;
  policy_->suspend(id);
}

void DaemonState::resume(ClientId id) {
  const auto client = clients_.find(id);
  if (client == clients_.end() || !client->second.suspended) return;
  client->second.suspended = false;
  policy_->resume(id);
}

void DaemonState::step(const Event& event, Nanos now, std::vector<Effect>& effects) {
  if (const auto* joined = std::get_if<Joined>(&event)) return join(*joined);
  if (const auto* left = std::get_if<Left>(&event)) return leave(left->client, now);
  if (const auto* stopped = std::get_if<Stopped>(&event)) return suspend(stopped->client);
  if (const auto* continued = std::get_if<Continued>(&event)) return resume(continued->client);
  if (const auto* received = std::get_if<Received>(&event)) {
    resume(received->client);
    const auto client = clients_.find(received->client);
    if (client == clients_.end()) return;  // closed with records left in its ring
    if (Complaint complaint = receive(*client, received->record, now, effects)) {
      leave(received->client, now);
      effects.push_back(Close{received->client, std::move(*complaint)});
    }
    return;
  }
  if (std::holds_alternative<DrainBegins>(event) && !draining_) {
    draining_ = true;
    for (const auto& [id, client] : clients_) {
      effects.push_back(Send{id, short_record(RecordKind::kDraining, 0)});
    }
  }
}

// A driver may show a program less of a device than another program (POCL_MEMORY_LIMIT): the device
// has what the most is that somebody says who is there.
DeviceId DaemonState::device_of(const DeviceDescription& said) {
  std::size_t unused = devices_.size();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceState& known = devices_[i];
    if (known.description.identity != said.identity) {
      if (known.clients == 0 && unused == devices_.size()) unused = i;
      continue;
    }
    if (known.clients == 0) {
      describe(i, said);
    } else if (memory_of(said) > memory_of(known.description)) {
      DeviceDescription larger = known.description;
      larger.memory = said.memory;
      describe(i, larger);
    }
    return DeviceId(static_cast<std::uint16_t>(i));
  }
  if (devices_.size() < kMaxDevices) {
    const DeviceId added(static_cast<std::uint16_t>(devices_.size()));
    devices_.push_back(DeviceState{said});
    policy_->add_device(added, said);
    return added;
  }
  if (unused == devices_.size()) return kNoDevice;
  devices_[unused] = DeviceState{};
  describe(unused, said);
  return DeviceId(static_cast<std::uint16_t>(unused));
}

void DaemonState::describe(std::size_t device, const DeviceDescription& said) {
  devices_[device].description = said;
  policy_->change_device(DeviceId(static_cast<std::uint16_t>(device)), said);
}

void DaemonState::join(const Joined& event) {
  AMASIA_CHECK(!clients_.contains(event.client), "client numbers are not used again");
  ClientState& client = clients_[event.client];
  client.process = event.process;
  client.program = event.program;
  policy_->add_client(event.client, event.weight);
  std::map<DeviceId, Bytes> memory;  // as the client sees it, by the best way
  for (const DeviceDescription& description : event.devices) {
    const DeviceId device = device_of(description);
    client.devices.push_back(device);
    if (device == kNoDevice) continue;
    Bytes& most = memory[device];
    most = std::max(most, memory_of(description));
    policy_->limit_memory(event.client, device, most);
    if (contains(client.device_set, device)) continue;  // another way to it
    client.device_set |= set_of(device);
    ++devices_[device.value].clients;
  }
}

void DaemonState::leave(ClientId id, Nanos now) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  ClientState& client = found->second;
  for (const auto& [number, task] : client.tasks) {
    if (task.granted) {
      end_granted(*found, task, false, nullptr, now);
    } else {
      policy_->cancel(TaskKey{id, number});
    }
  }
  client.tasks.clear();
  for (auto& [number, buffer] : client.buffers) {
    for (DeviceSet left = buffer.copies; left != 0; left &= left - 1) {
      drop_copy(*found, number, buffer,
                DeviceId(static_cast<std::uint16_t>(std::countr_zero(left))));
    }
  }
  for (DeviceSet left = client.device_set; left != 0; left &= left - 1) {
    --devices_[static_cast<std::size_t>(std::countr_zero(left))].clients;
  }
  clients_.erase(found);
  policy_->remove_client(id);
}

DaemonState::Complaint DaemonState::receive(Client& client, const Record& record, Nanos now,
                                            std::vector<Effect>& effects) {
  if (client.second.incoming.has_value() && record.kind() != RecordKind::kArguments) {
    return fmt::format("record {} came where arguments of task {} had to",
                       static_cast<unsigned>(record.kind()), client.second.incoming->task);
  }
  switch (record.kind()) {
    case RecordKind::kPut:
      return receive_put(client, record.as<PutRecord>(), now, effects);
    case RecordKind::kArguments:
      return receive_arguments(client, record.as<ArgumentsRecord>(), now, effects);
    case RecordKind::kFinished:
      return receive_finished(client, record.as<FinishedRecord>(), now, effects);
    case RecordKind::kCancel:
      receive_cancel(client, record.as<ShortRecord>().number);
      return std::nullopt;
    case RecordKind::kDropped:
      return receive_dropped(client, record.as<ShortRecord>());
    case RecordKind::kNameKernel: {
      const auto named = record.as<NameKernelRecord>();
      effects.push_back(KernelNamed{named.kernel, text_of(named.name)});
      return std::nullopt;
    }
    case RecordKind::kRan:
      return receive_ran(client, record.as<RanRecord>(), now, effects);
    default:
      return fmt::format("record of kind {} (allowed: 1 … 7)",
                         static_cast<unsigned>(record.kind()));
  }
}

DaemonState::Complaint DaemonState::receive_put(Client& client, const PutRecord& put_record,
                                                Nanos now, std::vector<Effect>& effects) {
  ClientState& state = client.second;
  const std::size_t devices = state.devices.size();
  const std::uint64_t all = devices == 64 ? ~0ULL : (1ULL << devices) - 1;
  if (put_record.task == 0 || state.tasks.contains(put_record.task)) {
    return fmt::format("task {} was put twice, or is 0", put_record.task);
  }
  if (put_record.allowed == 0 || (put_record.allowed & ~all) != 0 ||
      (put_record.preferred & ~put_record.allowed) != 0) {
    return fmt::format("task {} may run on devices {:#x}, better {:#x}, but there are {}",
                       put_record.task, put_record.allowed, put_record.preferred, devices);
  }
  if (put_record.arguments > kMaxResidentArguments) {
    return fmt::format("task {} has {} resident arguments (allowed: at most {})", put_record.task,
                       put_record.arguments, kMaxResidentArguments);
  }
  if (put_record.more >= policy_->run_most()) {
    return fmt::format("task {} begins a run of {} (allowed: at most {})", put_record.task,
                       put_record.more + 1, policy_->run_most());
  }
  if (state.tasks.size() >= kMaxTasks) {
    return fmt::format("there are more than {} tasks at once", kMaxTasks);
  }
  state.incoming = put_record;
  state.incoming_arguments.clear();
  if (put_record.arguments == 0) put(client, now, effects);
  return std::nullopt;
}

DaemonState::Complaint DaemonState::receive_arguments(Client& client,
                                                      const ArgumentsRecord& record, Nanos now,
                                                      std::vector<Effect>& effects) {
  ClientState& state = client.second;
  if (!state.incoming.has_value()) return "arguments came without a task";
  const std::size_t missing = state.incoming->arguments - state.incoming_arguments.size();
  if (record.count == 0 || record.count > ArgumentsRecord::kMost || record.count > missing) {
    return fmt::format("a record of {} arguments came where {} were missing", record.count,
                       missing);
  }
  for (unsigned i = 0; i < record.count; ++i) {
    const auto [number, size] = record.entries[i];
    if (number == 0 || size == 0 || record.access[i] == 0 || record.access[i] > 3) {
      return fmt::format("argument {} has buffer {} of {} bytes, access {}",
                         state.incoming_arguments.size(), number, size, record.access[i]);
    }
    const auto known = state.buffers.find(number);
    if (known != state.buffers.end() && known->second.size != size) {
      return fmt::format("buffer {} has {} bytes, and now {}", number, known->second.size, size);
    }
    if (known == state.buffers.end() && state.buffers.size() >= kMaxBuffers) {
      return fmt::format("there are more than {} buffers at once", kMaxBuffers);
    }
    state.buffers[number].size = size;
    state.incoming_arguments.push_back({number, size, static_cast<Access>(record.access[i])});
  }
  if (record.count == missing) put(client, now, effects);
  return std::nullopt;
}

void DaemonState::put(Client& client, Nanos now, std::vector<Effect>& effects) {
  ClientState& state = client.second;
  const PutRecord& record = *state.incoming;
  ClientState::Task task;
  TaskDescription& about = task.description;
  about.key = TaskKey{client.first, record.task};
  about.priority = record.priority;
  about.kernel = record.kernel;
  about.work_items = record.work_items;
  about.temporary = record.temporary;
  about.put_at = now;
  about.count = static_cast<std::uint32_t>(record.more) + 1;
  // A buffer that is named twice counts once.
  std::sort(state.incoming_arguments.begin(), state.incoming_arguments.end(),
            [](const TaskArgument& a, const TaskArgument& b) { return a.buffer < b.buffer; });
  for (const TaskArgument& argument : state.incoming_arguments) {
    if (!about.resident.empty() && about.resident.back().buffer == argument.buffer) {
      TaskArgument& same = about.resident.back();
      same.access = static_cast<Access>(static_cast<unsigned>(same.access) |
                                        static_cast<unsigned>(argument.access));
      continue;
    }
    about.resident.push_back(argument);
    ++state.buffers[argument.buffer].users;
  }
  task.own_allowed = record.allowed;
  about.allowed = translate(state.devices, record.allowed);
  about.preferred = translate(state.devices, record.preferred);
  const Bytes bytes = needed(about);
  DeviceSet large_enough = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (bytes <= memory_of(devices_[i].description)) large_enough |= DeviceSet{1} << i;
  }
  const bool is_somewhere = about.allowed != 0;
  state.incoming.reset();
  about.allowed &= large_enough;
  about.preferred &= large_enough;
  // Memory was looked at above; a quota is the policy's.
  const Status can = about.allowed == 0 ? Error{"no device is large enough", ENOMEM}
                                        : policy_->can_run(about);
  if (draining_ || !can.ok()) {
    const auto reason = draining_                     ? RefuseReason::kDraining
                        : !is_somewhere               ? RefuseReason::kNoDevice
                        : can.error().code == EDQUOT ? RefuseReason::kQuota
                                                      : RefuseReason::kTooLarge;
    release_buffers(client, task);
    effects.push_back(Send{client.first, short_record(RecordKind::kRefuse, about.key.task, 0,
                                                      static_cast<std::uint8_t>(reason))});
    return;
  }
  policy_->put(about);
  state.last_put = now;
  state.queued += about.count;
  state.tasks.emplace(about.key.task, std::move(task));
}

void DaemonState::release_buffers(Client& client, const ClientState::Task& task) {
  for (const TaskArgument& argument : task.description.resident) {
    const auto buffer = client.second.buffers.find(argument.buffer);
    AMASIA_CHECK(buffer != client.second.buffers.end() && buffer->second.users > 0,
                 "a task uses a buffer that is not known");
    if (task.granted) {
      auto& used_on = buffer->second.used_on;
      const auto entry = std::find(used_on.begin(), used_on.end(), task.device);
      AMASIA_CHECK(entry != used_on.end(), "a granted task does not use its buffer");
      used_on.erase(entry);
    }
    if (--buffer->second.users == 0 && buffer->second.copies == 0) {
      client.second.buffers.erase(buffer);
    }
  }
}

void DaemonState::end_granted(Client& client, const ClientState::Task& task, bool succeeded,
                              const FinishedRecord* said, Nanos now) {
  TaskEnd end;
  end.task = task.description.key;
  end.device = task.device;
  end.succeeded = succeeded;
  end.held_time = now - task.granted_at;
  DeviceState& device = devices_[task.device.value];
  if (said != nullptr) {
    // A client that lies about its times shall not make them longer than it held the device.
    const Nanos idle = std::clamp<Nanos>(said->idle, 0, end.held_time);
    end.run_time = std::clamp<Nanos>(said->run_ended - said->run_began - idle, 0, end.held_time);
    end.run_ended = said->run_ended;
    end.copy_time = std::clamp<Nanos>(
        (said->run_began - said->copy_began) + (said->copy_ended - said->run_ended), 0,
        end.held_time);
  }
  device.busy += end.run_time;
  const std::uint32_t count = task.description.count;
  AMASIA_CHECK(device.granted >= count && client.second.granted >= count,
               "more tasks end than were granted");
  device.granted -= count;
  client.second.granted -= count;
  device.finished += count;
  const std::uint32_t failed =
      succeeded ? 0 : std::clamp<std::uint32_t>(said != nullptr ? said->failed : count, 1, count);
  client.second.failed += failed;
  client.second.finished += count - failed;
  policy_->finish(end);
}

DaemonState::Complaint DaemonState::receive_finished(Client& client, const FinishedRecord& record,
                                                     Nanos now, std::vector<Effect>& effects) {
  const auto found = client.second.tasks.find(record.task);
  if (found == client.second.tasks.end() || !found->second.granted) {
    return fmt::format("task {} has ended without having been granted", record.task);
  }
  const ClientState::Task& task = found->second;
  TaskEnded ended;
  ended.task = task.description.key;
  ended.device = task.device;
  ended.kernel = task.description.kernel;
  ended.work_items = task.description.work_items;
  ended.succeeded = record.failure == 0;
  ended.count = task.description.count;
  ended.failed = ended.succeeded ? 0 : std::clamp<std::uint32_t>(record.failed, 1, ended.count);
  ended.put_at = task.description.put_at;
  ended.granted_at = task.granted_at;
  ended.finished_at = now;
  ended.copied = record.copied;
  Nanos last = task.granted_at;
  const auto in_order = [&](Nanos said) {
    if (said == 0) return Nanos{0};
    last = std::clamp(said, last, now);
    return last;
  };
  ended.copy_began = in_order(record.copy_began);
  ended.run_began = in_order(record.run_began);
  ended.run_ended = in_order(record.run_ended);
  ended.copy_ended = in_order(record.copy_ended);
  FinishedRecord ordered = record;
  ordered.copy_began = ended.copy_began;
  ordered.run_began = ended.run_began;
  ordered.run_ended = ended.run_ended;
  ordered.copy_ended = ended.copy_ended;
  end_granted(client, task, ended.succeeded, &ordered, now);
  release_buffers(client, task);
  client.second.tasks.erase(found);
  effects.push_back(ended);
  return std::nullopt;
}

void DaemonState::receive_cancel(Client& client, std::uint64_t number) {
  const auto found = client.second.tasks.find(number);
  // It may have been refused or granted meanwhile; a granted one ends as usual.
  if (found == client.second.tasks.end() || found->second.granted) return;
  policy_->cancel(found->second.description.key);
  client.second.queued -= found->second.description.count;
  release_buffers(client, found->second);
  client.second.tasks.erase(found);
}

DaemonState::Complaint DaemonState::receive_dropped(Client& client, const ShortRecord& record) {
  if (record.device != kAllDevices && record.device >= client.second.devices.size()) {
    return fmt::format("buffer {} left device {} of {}", record.number, record.device,
                       client.second.devices.size());
  }
  const auto found = client.second.buffers.find(record.number);
  if (found == client.second.buffers.end()) return std::nullopt;  // crossed an eviction
  ClientState::Buffer& buffer = found->second;
  DeviceSet gone = record.device == kAllDevices
                       ? buffer.copies
                       : buffer.copies & translate(client.second.devices, 1ULL << record.device);
  for (; gone != 0; gone &= gone - 1) {
    const DeviceId device(static_cast<std::uint16_t>(std::countr_zero(gone)));
    drop_copy(client, record.number, buffer, device);
    // A grant has crossed it: the client makes a new copy for that task.
    if (std::find(buffer.used_on.begin(), buffer.used_on.end(), device) != buffer.used_on.end()) {
      place_copy(client, record.number, buffer, device);
    }
  }
  if (buffer.copies == 0 && buffer.users == 0 && !client.second.incoming.has_value()) {
    client.second.buffers.erase(found);
  }
  return std::nullopt;
}

void DaemonState::place_copy(Client& client, std::uint64_t number, ClientState::Buffer& buffer,
                             DeviceId device) {
  if (contains(buffer.copies, device)) return;
  buffer.copies |= set_of(device);
  devices_[device.value].resident += buffer.size;
  client.second.resident += buffer.size;
  policy_->place(BufferKey{client.first, number}, device, buffer.size);
}

void DaemonState::drop_copy(Client& client, std::uint64_t number, ClientState::Buffer& buffer,
                            DeviceId device) {
  buffer.copies &= ~set_of(device);
  buffer.leaving &= ~set_of(device);
  devices_[device.value].resident -= buffer.size;
  client.second.resident -= buffer.size;
  policy_->drop(BufferKey{client.first, number}, device);
}

void DaemonState::schedule(Nanos now, std::vector<Effect>& effects) {
  for (;;) {
    const Decision decision = policy_->next(now);
    if (decision.nothing()) return revoke_leases(effects);
    AMASIA_CHECK(decision.evictions.empty() || !decision.grant.has_value(),
                 "a policy either grants or evicts");
    if (decision.grant.has_value()) grant(*decision.grant, now, effects);
    for (const Eviction& eviction : decision.evictions) evict(eviction, effects);
  }
}

void DaemonState::grant(const Grant& decided, Nanos now, std::vector<Effect>& effects) {
  const auto client = clients_.find(decided.task.client);
  AMASIA_CHECK(client != clients_.end(), "a policy grants a task of a client that has left");
  const auto found = client->second.tasks.find(decided.task.task);
  AMASIA_CHECK(found != client->second.tasks.end() && !found->second.granted,
               "a policy grants a task that is not queued");
  ClientState::Task& task = found->second;
  AMASIA_CHECK(contains(task.description.allowed, decided.device),
               "a policy grants a device that the task may not run on");
  task.granted = true;
  task.device = decided.device;
  task.granted_at = now;
  const std::uint32_t count = task.description.count;
  client->second.queued -= count;
  client->second.granted += count;
  devices_[decided.device.value].granted += count;
  for (const TaskArgument& argument : task.description.resident) {
    ClientState::Buffer& buffer = client->second.buffers[argument.buffer];
    buffer.used_on.push_back(decided.device);
    place_copy(*client, argument.buffer, buffer, decided.device);
  }
  const bool leases = may_lease(client->first, now);
  if (leases) client->second.leased |= set_of(decided.device);
  client->second.was_leased |= leases;
  effects.push_back(Send{client->first,
                         short_record(RecordKind::kGrant, decided.task.task,
                                      own_number(client->second.devices, decided.device,
                                                 task.own_allowed),
                                      0, leases)});
}

void DaemonState::evict(const Eviction& decided, std::vector<Effect>& effects) {
  const auto client = clients_.find(decided.buffer.client);
  AMASIA_CHECK(client != clients_.end(), "a policy evicts from a client that has left");
  const auto found = client->second.buffers.find(decided.buffer.buffer);
  AMASIA_CHECK(found != client->second.buffers.end() &&
                   contains(found->second.copies, decided.device),
               "a policy evicts a copy that is not there");
  ClientState::Buffer& buffer = found->second;
  AMASIA_CHECK(!contains(buffer.leaving, decided.device), "a policy evicts a copy twice");
  buffer.leaving |= set_of(decided.device);
  effects.push_back(Send{client->first,
                         short_record(RecordKind::kEvict, decided.buffer.buffer,
                                      own_number(client->second.devices, decided.device))});
}

bool DaemonState::is_valid() const {
  std::vector<std::uint32_t> granted(devices_.size()), clients(devices_.size());
  std::vector<Bytes> resident(devices_.size());
  for (const auto& [id, client] : clients_) {
    std::uint32_t client_granted = 0, client_queued = 0;
    std::unordered_map<std::uint64_t, std::uint32_t> users, running;
    for (const auto& [number, task] : client.tasks) {
      for (const TaskArgument& argument : task.description.resident) {
        ++users[argument.buffer];
        const auto buffer = client.buffers.find(argument.buffer);
        if (buffer == client.buffers.end()) return false;
        if (!task.granted) continue;
        ++running[argument.buffer];
        if (!contains(buffer->second.copies, task.device)) return false;
      }
      const std::uint32_t count = task.description.count;
      (task.granted ? client_granted : client_queued) += count;
      if (task.granted) granted[task.device.value] += count;
    }
    if (client_granted != client.granted || client_queued != client.queued) return false;
    Bytes sum = 0;
    for (const auto& [number, buffer] : client.buffers) {
      if (buffer.users != users[number]) return false;
      if (buffer.used_on.size() != running[number]) return false;
      if ((buffer.leaving & ~buffer.copies) != 0) return false;
      for (DeviceSet left = buffer.copies; left != 0; left &= left - 1) {
        resident[static_cast<std::size_t>(std::countr_zero(left))] += buffer.size;
        sum += buffer.size;
      }
    }
    if (sum != client.resident) return false;
    for (DeviceSet left = client.device_set; left != 0; left &= left - 1) {
      ++clients[static_cast<std::size_t>(std::countr_zero(left))];
    }
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceState& device = devices_[i];
    if (device.granted != granted[i] || device.clients != clients[i]) return false;
    if (device.resident != resident[i]) return false;
  }
  return true;
}

}  // namespace amasia::devices
