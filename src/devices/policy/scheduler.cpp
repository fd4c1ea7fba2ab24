// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace amasia::devices::policy {

void Scheduler::add_client(ClientId client, double weight) {
  ClientTerms terms = parts_.quota;
  terms.weight = weight;
  ledger_.set_client(client, terms);
  weights_[client] = weight;
  parts_.chooser->set_weight(client, weight);
}

void Scheduler::remove_client(ClientId client) {
  std::vector<TaskKey> left;
  for (const auto& [key, task] : queued_) {
    if (key.client == client) left.push_back(key);
  }
  for (const auto& [key, flight] : flights_) {
    if (key.client == client) left.push_back(key);
  }
  for (const TaskKey key : left) cancel(key);
  for (std::uint16_t i = 0; i < leaving_.size(); ++i) {
    for (std::size_t j = leaving_[i].size(); j-- > 0;) {
      const auto at = leaving_[i].begin() + static_cast<std::ptrdiff_t>(j);
      if (at->buffer.client == client) gone(DeviceId(i), at);
    }
  }
  ledger_.remove_client(client);
  weights_.erase(client);
  suspended_.erase(client);
  parts_.chooser->remove_client(client);
}

void Scheduler::add_device(DeviceId device, const DeviceDescription& description) {
  AMASIA_CHECK(device.value == ledger_.devices(),
               "devices are added in the order of their numbers");
  const DeviceTerms terms = terms_for(description);
  ledger_.add_device(terms);
  estimates_.add_device(terms);
  leaving_.emplace_back();
  last_ended_.push_back(0);
  devices_.push_back(description);
  parts_.chooser->add_device(device, description);
}

void Scheduler::change_device(DeviceId device, const DeviceDescription& description) {
  const DeviceTerms terms = terms_for(description);
  if (devices_[device.value].identity != description.identity) {
    estimates_.replace_device(device, terms);
    busy_[device.value] = last_ended_[device.value] = 0;
  }
  ledger_.change_device(device, terms);
  devices_[device.value] = description;
  parts_.chooser->add_device(device, description);
}

DeviceTerms Scheduler::terms_for(const DeviceDescription& description) const {
  DeviceTerms terms = terms_of(description);
  terms.ahead = parts_.ahead.value_or(terms.ahead);
  terms.turn = parts_.turn.value_or(terms.turn);
  return terms;
}

// A quota counts tasks, and so do turns; the interface of plug-ins knows of no runs.
std::uint32_t Scheduler::run_most() const {
  const bool counts = parts_.quota.in_flight_max != UINT32_MAX || parts_.counts_tasks;
  return counts || parts_.reserve != nullptr || parts_.ahead == 0 ? 1 : kRunMost;
}

Status Scheduler::can_run(const TaskDescription& task) const {
  if (ledger_.possible(task) != 0) return base::ok();
  if ((task.allowed & ledger_.all_devices()) == 0) {
    return Error{"no device of the classes asked for can run the task", 0};
  }
  Bytes needs = task.temporary, has = 0;
  for (const TaskArgument& argument : task.resident) {
    needs = argument.size > UINT64_MAX - needs ? UINT64_MAX : needs + argument.size;
  }
  for (std::uint16_t i = 0; i < ledger_.devices(); ++i) {
    if (!contains(task.allowed, DeviceId(i))) continue;
    has = std::max(has, ledger_.device(DeviceId(i)).terms.memory);
  }
  if (needs <= has) {
    return Error{fmt::format("the task needs {} on a device; the daemon grants a client {}",
                             base::volume_text(needs), base::volume_text(parts_.quota.bytes_max)),
                 EDQUOT};
  }
  return Error{fmt::format("the task needs {}; the largest device that it may run on has {}",
                           base::volume_text(needs), base::volume_text(has)),
               0};
}

void Scheduler::want(const Queued& queued) {
  for (const TaskArgument& argument : queued.task.resident) {
    if (!reads(argument.access)) continue;
    wanted_[{queued.task.key.client, argument.buffer}].insert(queued.place);
  }
}

void Scheduler::want_no_more(const Queued& queued) {
  for (const TaskArgument& argument : queued.task.resident) {
    const auto wanted = wanted_.find({queued.task.key.client, argument.buffer});
    if (wanted == wanted_.end()) continue;
    wanted->second.erase(queued.place);
    if (wanted->second.empty()) wanted_.erase(wanted);
  }
}

std::uint64_t Scheduler::next_use(const void* self, BufferKey buffer) {
  const auto& wanted = static_cast<const Scheduler*>(self)->wanted_;
  const auto found = wanted.find(buffer);
  return found == wanted.end() ? 0 : *found->second.begin();
}

void Scheduler::put(TaskDescription task) {
  const DeviceSet possible = ledger_.possible(task);
  AMASIA_CHECK(possible != 0, "a task that can run nowhere is refused, not put");
  AMASIA_CHECK(!queued_.contains(task.key) && !flights_.contains(task.key), "a task is put once");
  if (!suspended_.contains(task.key.client)) parts_.chooser->put(task, possible);
  const TaskKey key = task.key;
  Queued queued{std::move(task), ++places_};
  want(queued);
  queued_.emplace(key, std::move(queued));
}

Nanos Scheduler::expected(const TaskDescription& task, DeviceId device) const {
  return estimates_.keeps(task, device).value_or(0);
}

bool Scheduler::allowed(const Choice& choice) const {
  const auto found = queued_.find(choice.task);
  if (found == queued_.end() || choice.device.value >= ledger_.devices()) return false;
  const TaskDescription& task = found->second.task;
  if (!contains(ledger_.possible(task), choice.device)) return false;
  const Nanos takes = expected(task, choice.device);
  return ledger_.fits(task, choice.device, takes) ||
         (parts_.reserve == nullptr && ledger_.fits_as_guest(task, choice.device, takes));
}

// A plug-in may be wrong; the tasks in its line still have to run.
void Scheduler::dismiss_chooser(std::string why) {
  AMASIA_CHECK(parts_.reserve != nullptr, "our own choosers keep to the rules");
  complaint_ = std::move(why);
  parts_.chooser = std::move(parts_.reserve);
  for (std::uint16_t i = 0; i < devices_.size(); ++i) {
    parts_.chooser->add_device(DeviceId(i), devices_[i]);
  }
  for (const auto& [client, weight] : weights_) parts_.chooser->set_weight(client, weight);
  std::vector<const Queued*> tasks;
  for (const auto& [key, queued] : queued_) {
    if (!suspended_.contains(key.client)) tasks.push_back(&queued);
  }
  offer(std::move(tasks));
}

void Scheduler::offer(std::vector<const Queued*> tasks) {
  std::sort(tasks.begin(), tasks.end(),
            [](const Queued* a, const Queued* b) { return a->place < b->place; });
  for (const Queued* queued : tasks) {
    parts_.chooser->put(queued->task, ledger_.possible(queued->task));
  }
}

void Scheduler::suspend(ClientId client) {
  AMASIA_CHECK(!suspended_.contains(client), "a client is suspended once");
  for (const auto& [key, queued] : queued_) {
    if (key.client == client) parts_.chooser->remove(key);
  }
  for (const auto& [key, flight] : flights_) {
    if (key.client != client) continue;
    ledger_.set_aside(flight.task, flight.device, flight.expected);
    busy_[flight.device.value] -= flight.busy;
  }
  suspended_.insert(client);
}

void Scheduler::resume(ClientId client) {
  AMASIA_CHECK(suspended_.erase(client) == 1, "only who is suspended goes on");
  std::vector<const Queued*> tasks;
  for (const auto& [key, queued] : queued_) {
    if (key.client == client) tasks.push_back(&queued);
  }
  offer(std::move(tasks));
  for (const auto& [key, flight] : flights_) {
    if (key.client != client) continue;
    ledger_.take_back(flight.task, flight.device, flight.expected);
    busy_[flight.device.value] += flight.busy;
  }
}

Decision Scheduler::next(Nanos now) {
  if (!ready_.empty()) {
    Flight& flight = flights_.at(ready_.front());
    ready_.pop_front();
    return {grant(flight), {}};
  }
  // Guests come where there is more than one client; plug-ins know of none.
  const bool no_guests = weights_.size() <= 1 || parts_.reserve != nullptr;
  if (queued_.empty() || (ledger_.open() == 0 && no_guests)) return {};
  // A plug-in need not have an answer where all that is queued is kept from it.
  const auto is_offered = [&](const auto& one) { return !suspended_.contains(one.first.client); };
  if (!suspended_.empty() && std::none_of(queued_.begin(), queued_.end(), is_offered)) return {};
  const Sight sight{ledger_, estimates_, busy_, now};
  const auto choice = parts_.chooser->next(sight);
  if (!choice) {
    const bool stuck = flights_.empty() && parts_.chooser->ask_again_at() < 0;
    if (!stuck || parts_.reserve == nullptr) return {};
    dismiss_chooser(
        fmt::format("the policy '{}' chose none of {} queued tasks although nothing runs; 'fifo' "
                    "goes on in its "
                    "place",
                    parts_.name, queued_.size()));
    return next(now);
  }
  if (!allowed(*choice)) {
    dismiss_chooser(fmt::format(
        "the policy '{}' chose task {} of client {} for device {}, where it cannot start now; "
        "'fifo' "
        "goes on in its place",
        parts_.name, choice->task.task, choice->task.client.value, choice->device.value));
    return next(now);
  }
  return start(*choice, now);
}

Decision Scheduler::start(const Choice& choice, Nanos now) {
  const DeviceId id = choice.device;
  const auto queued = queued_.find(choice.task);
  want_no_more(queued->second);
  Flight flight{std::move(queued->second.task), id};
  queued_.erase(queued);
  const TaskDescription& task = flight.task;

  Decision out;
  for (const BufferKey& key :
       victims(*parts_.eviction, ledger_, task, id, &Scheduler::next_use, this)) {
    ledger_.drop(key, id);
    leaving_[id.value].push_back({key, {}});
    out.evictions.push_back({key, id});
  }
  if (ledger_.takes_memory(task, id)) {
    for (Leaving& leaving : leaving_[id.value]) leaving.waiting.push_back(task.key);
    flight.waits_for = leaving_[id.value].size();
  }
  flight.missing = ledger_.missing(task, id);
  flight.expected = expected(task, id);
  ledger_.start(task, id, flight.expected);
  flight.abreast = ledger_.device(id).in_flight;
  for (const TaskArgument& argument : task.resident) {
    DeviceUse& device = ledger_.device_for_eviction(id);
    Copy& copy = device.copies.at({task.key.client, argument.buffer});
    // A copy that kernels write has to be brought back first.
    const Nanos reload = estimates_.copy(copy.bytes, id) * (copy.dirty ? 2 : 1);
    parts_.eviction->touch(copy, device, reload);
  }
  const double run = static_cast<double>(estimates_.run_anywhere(task, id).value_or(0));
  flight.busy = static_cast<Nanos>(run * share_of(task, ledger_.device(id).terms));
  busy_[id.value] = std::max(busy_[id.value], now) + flight.busy;
  parts_.chooser->remove(task.key);
  parts_.chooser->started(task, id);
  AMASIA_CHECK(out.evictions.empty() || flight.waits_for > 0, "who evicts waits for the room");
  if (flight.waits_for == 0) {
    out.grant = grant(flight);
  }
  flights_.emplace(choice.task, std::move(flight));
  return out;
}

Grant Scheduler::grant(Flight& flight) {
  flight.granted = true;
  ledger_.bring(flight.task, flight.device);
  return {flight.task.key, flight.device};
}

// Of a device that runs one kernel after the other: what it ran. Where it runs several at once, as
// the system does that shares a CPU's cores: from the end of the one before to its own, or its
// share of a longer one.
Nanos Scheduler::kept(std::uint32_t abreast, const TaskEnd& end) {
  Nanos& before = last_ended_[end.device.value];
  const Nanos since = end.run_ended == 0 ? end.run_time : end.run_ended - before;
  before = std::max(before, end.run_ended);
  const Nanos most = std::max(abreast, ledger_.device(end.device).in_flight);
  return std::clamp(since, end.run_time / most, end.run_time);
}

void Scheduler::ran(const TaskDescription& task, const TaskEnd& end) {
  estimates_.learn(task, end, kept(1, end), 0);
  parts_.chooser->ran(task, end, ledger_.device(end.device).terms);
}

void Scheduler::finish(const TaskEnd& end) {
  const auto flight = flights_.find(end.task);
  AMASIA_CHECK(flight != flights_.end(), "only a task that was granted can end");
  const Nanos kept_for = kept(flight->second.abreast, end);
  estimates_.learn(flight->second.task, end, kept_for, flight->second.missing);
  land(flight, end);
}

void Scheduler::land(std::unordered_map<TaskKey, Flight, TaskKeyHash>::iterator found,
                     const TaskEnd& end) {
  Flight flight = std::move(found->second);
  flights_.erase(found);
  if (suspended_.contains(flight.task.key.client)) {
    ledger_.take_back(flight.task, flight.device, flight.expected);
    busy_[flight.device.value] += flight.busy;
  }
  if (flight.granted) {
    ledger_.finish(flight.task, flight.device, flight.expected);
  } else {
    ledger_.withdraw(flight.task, flight.device, flight.expected);
  }
  Nanos& busy = busy_[flight.device.value];
  // It took something else than was thought; and a device with nothing in flight is not busy.
  if (end.run_time > 0 && flight.busy > 0) {
    const double share = share_of(flight.task, ledger_.device(flight.device).terms);
    busy += static_cast<Nanos>(static_cast<double>(end.run_time) * share) - flight.busy;
  }
  if (ledger_.device(flight.device).in_flight == 0) busy = 0;
  parts_.chooser->ended(flight.task, end);
}

void Scheduler::cancel(TaskKey key) {
  if (const auto queued = queued_.find(key); queued != queued_.end()) {
    want_no_more(queued->second);
    if (!suspended_.contains(key.client)) parts_.chooser->remove(key);
    queued_.erase(queued);
    return;
  }
  const auto flight = flights_.find(key);
  if (flight == flights_.end()) return;
  std::erase(ready_, key);
  for (Leaving& leaving : leaving_[flight->second.device.value]) std::erase(leaving.waiting, key);
  land(flight, {key, flight->second.device, false});
}

void Scheduler::place(BufferKey buffer, DeviceId device, Bytes size) {
  if (device.value < ledger_.devices()) ledger_.place(buffer, device, size);
}

void Scheduler::gone(DeviceId device, std::vector<Leaving>::iterator leaving) {
  for (const TaskKey key : leaving->waiting) {
    Flight& flight = flights_.at(key);
    if (--flight.waits_for == 0) ready_.push_back(key);
  }
  leaving_[device.value].erase(leaving);
}

void Scheduler::drop(BufferKey buffer, DeviceId device) {
  if (device.value >= ledger_.devices()) return;
  auto& leaving = leaving_[device.value];
  const auto found = std::find_if(leaving.begin(), leaving.end(),
                                  [&](const Leaving& one) { return one.buffer == buffer; });
  if (found != leaving.end()) {
    gone(device, found);
  } else {
    ledger_.drop(buffer, device);
  }
}

}  // namespace amasia::devices::policy
