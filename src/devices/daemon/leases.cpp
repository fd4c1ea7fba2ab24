// SPDX-License-Identifier: Apache-2.0
// Devices that a client may use without asking, as it is alone (docs/protocols/devices.md).
#include <fmt/format.h>

#include <algorithm>

#include "devices/daemon/state.hpp"

namespace amasia::devices {
namespace {

// Where others have put something this long ago they may do so again: to revoke a lease wakes a
// program that may be asleep.
constexpr Nanos kAloneFor = base::kMillisecond;

}  // namespace

// The client is believed as far as it harms only itself: what it ran so came one after the other,
// and has ended by now.
DaemonState::Complaint DaemonState::receive_ran(Client& client, const RanRecord& record,
                                                Nanos now, std::vector<Effect>& effects) {
  ClientState& state = client.second;
  if (!state.was_leased) return fmt::format("task {} ran without having been put", record.task);
  if (record.device >= state.devices.size() || state.devices[record.device] == kNoDevice ||
      record.task == 0 || state.tasks.contains(record.task)) {
    return fmt::format("task {} ran on device {} of {}, or was put before", record.task,
                       record.device, state.devices.size());
  }
  TaskEnded ended;
  ended.task = TaskKey{client.first, record.task};
  ended.device = state.devices[record.device];
  ended.kernel = record.kernel;
  ended.work_items = record.work_items;
  ended.succeeded = record.failure == 0;
  ended.failed = ended.succeeded ? 0 : 1;
  ended.finished_at = now;
  ended.copied = record.copied;
  ended.put_at = ended.granted_at = std::clamp(record.sent, std::min(state.ran_until, now), now);
  const bool times_known = record.run_began != 0 && record.run_ended != 0;
  if (times_known) {
    ended.run_began = std::clamp(record.run_began, ended.granted_at, now);
    ended.run_ended = std::clamp(record.run_ended, ended.run_began, now);
  }
  state.ran_until = std::max(ended.granted_at, ended.run_ended);
  TaskEnd end;
  end.task = ended.task;
  end.device = ended.device;
  end.succeeded = ended.succeeded;
  end.run_time = ended.run_ended - ended.run_began;
  end.run_ended = ended.run_ended;
  end.held_time = times_known ? ended.run_ended - ended.granted_at : 0;
  TaskDescription about;
  about.key = ended.task;
  about.allowed = set_of(ended.device);
  about.kernel = record.kernel;
  about.work_items = record.work_items;
  about.put_at = ended.put_at;
  policy_->ran(about, end);
  DeviceState& device = devices_[ended.device.value];
  device.busy += end.run_time;
  ++device.finished;
  ++(ended.succeeded ? state.finished : state.failed);
  effects.push_back(ended);
  return std::nullopt;
}

bool DaemonState::may_lease(ClientId id, Nanos now) const {
  if (draining_ || policy_->run_most() <= 1) return false;
  return std::all_of(clients_.begin(), clients_.end(), [&](const auto& client) {
    const ClientState& other = client.second;
    return client.first == id ||
           (other.tasks.empty() && (other.last_put < 0 || now - other.last_put > kAloneFor));
  });
}

// Who has something queued finds no room, or it is not its turn.
void DaemonState::revoke_leases(std::vector<Effect>& effects) {
  for (auto& [id, client] : clients_) {
    if (client.leased == 0 || !keeps_others(id)) continue;
    client.leased = 0;
    effects.push_back(Send{id, short_record(RecordKind::kRevoke, 0)});
  }
}

}  // namespace amasia::devices
