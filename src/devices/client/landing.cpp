// SPDX-License-Identifier: Apache-2.0
// From the end of the work on a device to the end of the task.
#include <algorithm>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// A kernel that takes longer keeps the thread that runs it from the ring for too long.
constexpr Nanos kLongInCaller = 50 * base::kMicrosecond;

}  // namespace

void Task::finished(Outcome&& told) noexcept {
  client->finish_run(*this, std::move(told));
}

void Task::finished_with_others(Outcome&& told) noexcept {
  client->finish_run(*this, std::move(told), true);
}

void Client::finish_run(Task& task, Outcome&& outcome, bool others_follow) {
  telling_.fetch_add(1, std::memory_order_relaxed);
  task.outcome = std::move(outcome);
  task.arrived_before = arrived_.load(std::memory_order_relaxed);
  // Partner: take_arrivals(), also of who has the lock just now and has not let go of it yet: it
  // looks after that. From here on the task may be gone.
  while (!arrived_.compare_exchange_weak(task.arrived_before, &task, std::memory_order_seq_cst)) {
  }
  if (!others_follow) take_arrivals();
  telling_.fetch_sub(1, std::memory_order_release);  // partner: the end of the client
}

void Client::take_arrivals() {
  while (arrived_.load(std::memory_order_seq_cst) != nullptr && lock_.try_lock()) {
    Task* task = arrived_.exchange(nullptr, std::memory_order_seq_cst);
    Task* first = nullptr;  // in the order in which they came
    while (task != nullptr) {
      Task* const before = task->arrived_before;
      task->arrived_before = first;
      first = task;
      task = before;
    }
    while (first != nullptr) {
      const std::shared_ptr<Task> keeps = std::move(first->self);
      first = first->arrived_before;
      land(keeps);
    }
    pump();
    flush();
    lock_.unlock();
  }
}

void Client::land(const std::shared_ptr<Task>& task) {
  const Outcome outcome = std::move(task->outcome);
  Fault failure = std::move(task->failure);
  task->failure = no_fault();
  if (outcome.failure != Failure::kNone && !failure) {
    failure = fault_of(outcome);
    if (failure.reason.empty()) failure.reason = "the device gives no reason";
  }
  const auto told = failure ? std::max<int>(1, static_cast<int>(outcome.failure)) : 0;
  const bool ours = link_ != nullptr && task->link == link_number_;
  if (ours) {
    const auto device = static_cast<OwnDevice>(task->device);
    --outstanding_;
    --granted_;
    --in_flight_[device].now;
    const DevicePlace& place = places_[device];
    looks_for_room_ |= in_flight_[device].now < place.description->queue_depth;
    in_flight_[device].runs_long = place.backend->runs_in_caller(place.local) &&
                                   outcome.run_ended - outcome.run_began > kLongInCaller;
    tell_end(*task, outcome, static_cast<std::uint8_t>(told));
    weigh(*task);
  }
  release(*task, static_cast<bool>(failure));
  end(task, std::move(failure));
}

// Gives back what the task used.
void Client::release(Task& task, bool failed) {
  const auto device = static_cast<OwnDevice>(task.device);
  for (std::shared_ptr<DeviceBuffer>& held : task.held) {
    const bool stays = std::any_of(
        task.arguments.begin(), task.arguments.end(), [&](const Argument& argument) {
          if (argument.resident == nullptr) return false;
          const auto copy = argument.resident->copies.find(device);
          return copy != argument.resident->copies.end() && copy->second == held;
        });
    // Another reference of that copy is kept, and goes under the lock too: nothing is freed here.
    if (stays) {
      held.reset();
    } else {
      bury(std::move(held));
    }
  }
  task.held.clear();
  for (Argument& argument : task.arguments) {
    if (argument.resident == nullptr) continue;
    ResidentBuffer& buffer = *argument.resident;
    --buffer.running[device];
    if (failed && (argument.kernel_writes() || std::find(task.moved.begin(), task.moved.end(),
                                                         argument.resident) != task.moved.end())) {
      // What the copy has is not known.
      if (buffer.running[device] == 0) drop_copy(buffer, device, false);
    }
    if (!buffer.copies.contains(device) && buffer.running[device] == 0 &&
        !has_other_copy(buffer, device)) {
      // The daemon counts a copy with each grant.
      post(short_record(RecordKind::kDropped, buffer.number, device));
    }
    if ((argument.flags & MCL_ARG_DONE) != 0) {
      for (const OwnDevice other : buffer.where.copies()) {
        if (buffer.running[other] == 0) drop_copy(buffer, other, true);
      }
    }
  }
  for (const std::shared_ptr<ResidentBuffer>& buffer : task.moved) unpark(*buffer);
  task.moved.clear();
  for (Argument& argument : task.arguments) {
    if (argument.resident == nullptr) continue;
    ResidentBuffer& buffer = *argument.resident;
    if (contains(buffer.to_evict, DeviceId(device)) && buffer.running[device] == 0 &&
        !buffer.moving) {
      enqueue({nullptr, argument.resident, device}, false);
    }
  }
}

}  // namespace amasia::devices
