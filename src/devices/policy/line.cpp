// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/line.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace amasia::devices::policy {

namespace {
Nanos length_of(DeviceId device, const Sight& sight) {
  return sight.ledger.device(device).terms.turn;
}
}  // namespace

// One call of next().
struct Line::Round {
  const Sight& sight;
  BusyUntil busy;
  std::size_t left = kScanMax;
  Nanos ask_at = -1;
  DeviceSet kept = 0;  // from the group that is looked at
  std::optional<Choice> choice;
  // Tasks that did not fit, though a device of theirs had room for some task.
  std::vector<std::pair<Waiting*, DeviceSet>> passed_over;
};

void Line::set_weight(ClientId client, double weight) {
  if (fairness_.charge != nullptr) groups_[client].weight = weight;
}

void Line::remove_client(ClientId client) {
  if (fairness_.charge != nullptr) groups_.erase(client);
}

void Line::put(const TaskDescription& task, DeviceSet possible) {
  const ClientId id = group_of(task.key.client);
  Group& group = groups_[id];
  if (group.waiting == 0) {
    group.time = std::max(group.time, time_);
    group.is_urgent = group.time <= time_;
    if (group.is_urgent) shorten_turns_of_others(id, possible);
  }
  const Rank rank{order_.key(task, settings_.ageing), sequence_++};
  group.lanes[possible].emplace(rank, Waiting{task});
  ++group.waiting;
  places_[task.key] = {id, possible, rank};
}

void Line::remove(TaskKey key) {
  const auto place = places_.find(key);
  AMASIA_CHECK(place != places_.end(), "only a task that was put can leave the line");
  Group& group = groups_[place->second.group];
  const auto lane = group.lanes.find(place->second.lane);
  const auto waiting = lane->second.find(place->second.rank);
  if (waiting->second.reserved) reserved_ &= ~set_of(*waiting->second.reserved);
  lane->second.erase(waiting);
  // An empty lane stays only where another is unlikely: few sets of devices are ever asked for.
  if (lane->second.empty()) group.lanes.erase(lane);
  --group.waiting;
  places_.erase(place);
}

double Line::charge(const TaskDescription& task, double ran, const DeviceTerms& terms) const {
  return fairness_.charge == nullptr ? 0 : fairness_.charge(ran, share_of(task, terms));
}

std::optional<Choice> Line::next(const Sight& sight) {
  Round round{sight, sight.busy};
  pass_turns(sight);
  std::vector<std::pair<double, ClientId>> turns;
  for (const auto& [id, group] : groups_) {
    const bool may = fairness_.charge == nullptr || sight.ledger.within_quota(id);
    if (group.waiting > 0 && may) turns.emplace_back(group.time, id);
  }
  std::sort(turns.begin(), turns.end());
  ask_at_ = -1;
  for (const auto& [time, id] : turns) {
    Group& group = groups_[id];
    // Every client is looked at, however long the lines of those before it are.
    round.left = std::max<std::size_t>(kScanMax / turns.size(), 8);
    if (!scan_group(id, group, round)) continue;
    time_ = std::max(time_, group.time);
    note_overtakes(round);
    return round.choice;
  }
  ask_at_ = round.ask_at;
  return std::nullopt;
}

bool Line::wants(ClientId id, DeviceId device, const Ledger& ledger) const {
  const auto group = groups_.find(id);
  if (group == groups_.end() || !ledger.within_quota(id)) return false;
  const auto& lanes = group->second.lanes;
  return std::any_of(lanes.begin(), lanes.end(),
                     [&](const auto& lane) { return contains(lane.first, device); });
}

Line::Turn Line::turn_of(ClientId id, bool begun, Nanos length, Nanos now) {
  return {id, begun, now, now + length, now + length / 4, 0};
}

// One that has not begun is that of who was next already.
void Line::shorten_turns_of_others(ClientId id, DeviceSet wanted) {
  for (auto& [device, turn] : turns_) {
    if (!turn.begun || turn.holder == id || !contains(wanted, device)) continue;
    turn.until = std::min(turn.until, turn.until_at_least);
  }
}

std::optional<ClientId> Line::next_for(DeviceId device, const Ledger& ledger) const {
  std::optional<std::tuple<bool, double, ClientId>> next;
  for (const auto& [id, group] : groups_) {
    if (!wants(id, device, ledger)) continue;
    const std::tuple here(!group.is_urgent, group.time, id);
    if (!next || here < *next) next = here;
  }
  if (!next) return std::nullopt;
  return std::get<ClientId>(*next);
}

// Where a turn is over the device is kept for who is next, whether it fits there now or not: what
// is not brief never would beside another's brief ones.
void Line::pass_turns(const Sight& sight) {
  for (auto at = turns_.begin(); at != turns_.end();) {
    const auto [device, turn] = *at;
    if (sight.now < turn.until && wants(turn.holder, device, sight.ledger)) {
      ++at;
      continue;
    }
    const auto holder = groups_.find(turn.holder);
    if (holder != groups_.end() && !fairness_.counts_tasks) {
      const auto kept = static_cast<double>(std::min(sight.now, turn.until) - turn.since);
      holder->second.time += std::max(0.0, kept - turn.charged) / holder->second.weight;
    }
    const std::optional<ClientId> next = next_for(device, sight.ledger);
    if (next && length_of(device, sight) > 0) {
      at->second = turn_of(*next, false, length_of(device, sight), sight.now);
      ++at;
    } else {
      at = turns_.erase(at);
    }
  }
}

// Of `id` a task is chosen for the device. With one that is long there is nothing to be saved.
void Line::take_turn(ClientId id, const TaskDescription& task, DeviceId device,
                     const Sight& sight) {
  const Nanos length = length_of(device, sight);
  if (length == 0 || fairness_.charge == nullptr) return;
  const auto found = turns_.find(device);
  if (found != turns_.end() && (found->second.holder != id || found->second.begun)) return;
  const Nanos keeps = sight.estimates.keeps(task, device).value_or(0);
  if (keeps > 0 && keeps <= length / 4) {
    turns_[device] = turn_of(id, true, length, sight.now);
  } else if (found != turns_.end()) {
    turns_.erase(found);
  }
}

// The devices that others keep, and until when one of them does at least; negative: there is none.
DeviceSet Line::kept_from(ClientId id, Nanos* until) const {
  DeviceSet kept = 0;
  *until = -1;
  for (const auto& [device, turn] : turns_) {
    if (turn.holder == id) continue;
    kept |= set_of(device);
    *until = *until < 0 ? turn.until : std::min(*until, turn.until);
  }
  return kept;
}

void Line::add_to_turn(ClientId id, DeviceId device, double charged) {
  const auto turn = turns_.find(device);
  if (turn != turns_.end() && turn->second.holder == id) turn->second.charged += charged;
}

// The lanes' tasks merged by rank.
bool Line::scan_group(ClientId id, Group& group, Round& round) {
  Nanos until = -1;
  round.kept = kept_from(id, &until);
  struct Cursor {
    Lane::iterator at, end;
    DeviceSet possible;
  };
  std::vector<Cursor> cursors;
  for (auto& [possible, lane] : group.lanes) {
    const Ledger& ledger = round.sight.ledger;
    const bool is_client = fairness_.charge != nullptr;
    const DeviceSet open = possible & (is_client ? ledger.open_to(id) : ledger.open());
    if ((open & round.kept) != 0) {
      round.ask_at = round.ask_at < 0 ? until : std::min(round.ask_at, until);
    }
    if ((open & (~round.kept | reserved_)) == 0) continue;
    cursors.push_back({lane.begin(), lane.end(), possible});
  }
  while (!cursors.empty() && round.left > 0) {
    const auto first = std::min_element(
        cursors.begin(), cursors.end(),
        [](const Cursor& a, const Cursor& b) { return a.at->first < b.at->first; });
    --round.left;
    if (consider(id, first->at->second, first->possible, round)) return true;
    if (++first->at == first->end) cursors.erase(first);
  }
  return false;
}

bool Line::consider(ClientId id, Waiting& waiting, DeviceSet possible, Round& round) {
  const Ledger& ledger = round.sight.ledger;
  DeviceSet usable = possible & ~reserved_;
  if (waiting.reserved) usable = set_of(*waiting.reserved);
  // A device that is reserved for a task is kept by nobody else.
  const DeviceSet at_hand = waiting.reserved ? usable : usable & ~round.kept;
  const auto fitting_of = [&](DeviceSet open, auto fits) {
    DeviceSet out = 0;
    for (DeviceSet rest = at_hand & open; rest != 0; rest &= rest - 1) {
      const DeviceId device(static_cast<std::uint16_t>(std::countr_zero(rest)));
      if ((round.sight.*fits)(waiting.task, device)) out |= set_of(device);
    }
    return out;
  };
  DeviceSet fitting = fitting_of(ledger.open(), &Sight::fits);
  if (fitting == 0 && fairness_.charge != nullptr) {
    fitting = fitting_of(ledger.open_to(waiting.task.key.client), &Sight::fits_as_guest);
  }
  if (fitting == 0) {
    if (order_.reserves && !waiting.reserved && ledger.within_quota(waiting.task.key.client)) {
      round.passed_over.emplace_back(&waiting, possible);
    }
    return false;
  }
  // A soft wish: devices of the favoured class while one of them has room.
  const bool favoured = (fitting & waiting.task.preferred) != 0;
  if (favoured) fitting &= waiting.task.preferred;
  const DeviceSet eligible = favoured ? usable & waiting.task.preferred : usable;
  const PlacementAnswer answer =
      placement_->choose({waiting.task, fitting, eligible, ledger, round.sight.estimates,
                          round.sight.now, waiting.waits_since, round.busy});
  if (!answer.device) {
    if (answer.ask_at >= 0 && (round.ask_at < 0 || answer.ask_at < round.ask_at)) {
      round.ask_at = answer.ask_at;
    }
    return false;
  }
  AMASIA_CHECK(contains(fitting, *answer.device), "a placement answers with a device that fits");
  round.choice = Choice{waiting.task.key, *answer.device};
  const double known =
      static_cast<double>(round.sight.estimates.run_anywhere(waiting.task, *answer.device)
                              .value_or(static_cast<Nanos>(typical_)));
  const DeviceTerms& terms = ledger.device(*answer.device).terms;
  take_turn(id, waiting.task, *answer.device, round.sight);
  chosen_ = {waiting.task.key, Charged{charge(waiting.task, known, terms), terms}};
  return true;
}

void Line::note_overtakes(Round& round) {
  for (auto& [waiting, possible] : round.passed_over) {
    if (!contains(possible, round.choice->device)) continue;
    if (++waiting->overtaken <= settings_.overtakes_max) continue;
    reserve(*waiting, possible, round.sight.ledger);
  }
}

// The device that has least in flight, of those not reserved: it will soonest be empty enough.
void Line::reserve(Waiting& waiting, DeviceSet possible, const Ledger& ledger) {
  for (DeviceSet rest = possible & ~reserved_; rest != 0; rest &= rest - 1) {
    const DeviceId id(static_cast<std::uint16_t>(std::countr_zero(rest)));
    if (!waiting.reserved ||
        ledger.device(id).in_flight < ledger.device(*waiting.reserved).in_flight) {
      waiting.reserved = id;
    }
  }
  if (waiting.reserved) reserved_ |= set_of(*waiting.reserved);
}

void Line::started(const TaskDescription& task, DeviceId device) {
  placement_->started(task, device);
  AMASIA_CHECK(chosen_ && chosen_->first == task.key, "what starts is what was chosen");
  Group& group = groups_[group_of(task.key.client)];
  group.time += chosen_->second.amount / group.weight;
  group.is_urgent = false;
  add_to_turn(group_of(task.key.client), device, chosen_->second.amount);
  charged_[task.key] = chosen_->second;
  chosen_.reset();
}

void Line::ended(const TaskDescription& task, const TaskEnd& end) {
  placement_->ended(task, end.device);
  const auto charged = charged_.find(task.key);
  if (charged == charged_.end()) return;
  // By the daemon's clock where the client does not say how long it ran.
  const double ran = static_cast<double>(end.run_time > 0 ? end.run_time : end.held_time);
  const double really = charge(task, ran, charged->second.terms);
  if (ran > 0) typical_ += (ran - typical_) / 16;
  const auto group = groups_.find(group_of(task.key.client));
  if (group != groups_.end()) {
    group->second.time += (really - charged->second.amount) / group->second.weight;
    add_to_turn(group->first, end.device, really - charged->second.amount);
  }
  charged_.erase(charged);
}

void Line::ran(const TaskDescription& task, const TaskEnd& end, const DeviceTerms& terms) {
  const ClientId id = group_of(task.key.client);
  const auto group = groups_.find(id);
  if (group == groups_.end()) return;
  const double amount = charge(task, static_cast<double>(end.run_time), terms);
  if (group->second.waiting == 0) group->second.time = std::max(group->second.time, time_);
  group->second.time += amount / group->second.weight;
  add_to_turn(id, end.device, amount);
}

}  // namespace amasia::devices::policy
