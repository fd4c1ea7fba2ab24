// SPDX-License-Identifier: Apache-2.0
// Tasks that are ready go to the daemon: those that are brief and alike gather while it has some
// already, and go as one (run.hpp).
#include <algorithm>
#include <bit>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// Runs that the daemon may have and not have granted, so that it has one when a device has room;
// what is ready beyond them gathers here.
constexpr std::size_t kRunsQueued = 2;
// Kinds of tasks that gather at a time.
constexpr std::size_t kKindsGathered = 8;

}  // namespace

std::uint32_t Client::run_length_of(const Task& task) {
  const bool alone = std::any_of(
      task.arguments.begin(), task.arguments.end(),
      [](const Argument& one) { return one.is_buffer() && one.resident == nullptr; });
  const std::uint32_t most = link_->welcome().run_most;
  if (most <= 1 || task.identity == 0 || alone) return 1;
  const auto known = brief_times_.find(task.identity);
  if (known == brief_times_.end()) return 1;
  return run_length_max(known->second.expected(task.items()), most);
}

// Invariant: where tasks gather, the daemon has kRunsQueued runs to grant: what it answers, or its
// end, goes on with it.
void Client::offer(const std::shared_ptr<Task>& task) {
  const std::uint32_t most = run_length_of(*task);
  if (most == 1) return put({&task, 1}, nullptr);
  const auto run = std::find_if(gathered_.begin(), gathered_.end(), [&](const auto& one) {
    return are_alike(*one->tasks.front(), *task);
  });
  ++gathered_tasks_;
  if (run == gathered_.end()) {
    gathered_.push_back(std::make_shared<Run>());
    gathered_.back()->tasks.push_back(task);
    if (gathered_.size() > kKindsGathered) put_gathered(gathered_.begin());
  } else {
    (*run)->tasks.push_back(task);
    if ((*run)->tasks.size() >= most) put_gathered(run);
  }
  put_some_gathered();
}

void Client::put_some_gathered() {
  while (!gathered_.empty() && runs_queued_.size() < kRunsQueued) put_gathered(gathered_.begin());
}

void Client::put_gathered(std::deque<std::shared_ptr<Run>>::iterator at) {
  const std::shared_ptr<Run> run = *at;
  gathered_.erase(at);
  gathered_tasks_ -= run->tasks.size();
  put(run->tasks, run);
}

// The daemon takes no more: they are ready tasks again.
void Client::scatter() {
  for (const auto& run : gathered_) {
    for (const auto& task : run->tasks) {
      ready_.emplace(std::pair(-std::int64_t{task->priority}, task->number), task);
    }
    run->tasks.clear();
  }
  gathered_.clear();
  gathered_tasks_ = 0;
}

// What the daemon has been told by that number, and has answered now: one task, or a run.
std::vector<std::shared_ptr<Task>> Client::answered(std::uint64_t number) {
  const auto found = tasks_.find(number);
  AMASIA_CHECK(found != tasks_.end() && found->second->state == TaskState::kPut,
               "the daemon answers what was not put");
  if (found->second->run == nullptr) return {found->second};
  std::erase_if(runs_queued_, [&](const QueuedRun& one) { return one.number == number; });
  looks_for_room_ = true;
  return std::exchange(found->second->run->tasks, {});
}

void Client::forget_runs() {
  for (const auto& [number, task] : tasks_) {
    if (task->run != nullptr) task->run->tasks.clear();  // they hold each other
  }
  runs_queued_.clear();
  looks_for_room_ = false;
}

DeviceSet Client::devices_of(DeviceSet places) const {
  DeviceSet set = 0;
  for (const OwnDevice shown : shown_) {
    if ((same_[shown] & places) != 0) set |= DeviceSet{1} << shown;
  }
  return set;
}

DeviceSet Client::with_room() {
  DeviceSet set = 0;
  for (const OwnDevice shown : shown_) {
    std::uint32_t now = 0;
    for (DeviceSet left = same_[shown]; left != 0; left &= left - 1) {
      now += in_flight_[static_cast<std::size_t>(std::countr_zero(left))].now;
    }
    if (now < places_[shown].description->queue_depth) set |= DeviceSet{1} << shown;
  }
  return set;
}

bool Client::must_be_heard() {
  const bool unheard = std::any_of(runs_queued_.begin(), runs_queued_.end(),
                                   [](const QueuedRun& one) { return !one.heard; });
  return unheard && is_worth_waking(runs_queued_, with_room());
}

void Client::note_heard() {
  for (QueuedRun& run : runs_queued_) run.heard = true;
}

void Client::tell_end(Task& task, const Outcome& outcome, std::uint8_t failure) {
  const Urgency urgency = urgency_of_end(static_cast<OwnDevice>(task.device));
  if (task.identity != 0 && outcome.run_ended > outcome.run_began) {
    brief_times_[task.identity].learn(task.items(), outcome.run_ended - outcome.run_began);
  }
  if (task.begun_at != 0) return tell_ran(task, outcome, failure);
  if (task.run != nullptr) {
    const std::shared_ptr<Run> run = std::move(task.run);
    if (run->note_end(outcome, failure, task.copied)) post(Record::of(run->ended), urgency);
    return;
  }
  FinishedRecord record;
  record.task = task.number;
  record.failure = failure;
  record.copy_began = outcome.copy_began;
  record.run_began = outcome.run_began;
  record.run_ended = outcome.run_ended;
  record.copy_ended = outcome.copy_ended;
  record.copied = task.copied;
  post(Record::of(record), urgency);
}

}  // namespace amasia::devices
