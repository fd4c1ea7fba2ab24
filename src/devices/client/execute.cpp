// SPDX-License-Identifier: Apache-2.0
// From a grant to the end of the work on a device.
#include <algorithm>
#include <bit>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// For a work whose end the caller waits for.
class Waiter final : public Completion {
 public:
  void finished(Outcome&& outcome) noexcept override {
    outcome_ = std::move(outcome);
    os::MutexLock lock(mutex_);
    // Under the lock, so that the waiter does not end this object before the wake-up.
    done_.store(1, std::memory_order_release);
    os::futex_wake(done_, 1);
  }
  Outcome wait() {
    while (done_.load(std::memory_order_acquire) == 0) os::futex_wait(done_, 0, -1);
    os::MutexLock lock(mutex_);
    return std::move(outcome_);
  }

 private:
  Outcome outcome_;
  os::Mutex mutex_;
  std::atomic<std::uint32_t> done_{0};
};

}  // namespace

bool Client::begin(const std::shared_ptr<Task>& task, Work* work) {
  empty_graveyard();
  Fault why;
  if (!prepare(task, work, &why)) {
    if (!why) return false;
    Outcome outcome;
    outcome.failure = Failure::kDevice;
    task->failure = std::move(why);
    task->self = task;
    finish_run(*task, std::move(outcome));
    return false;
  }
  task->self = task;
  if (work->kernel != nullptr || !work->to_device.empty() || !work->to_host.empty()) return true;
  finish_run(*task, Outcome{});
  return false;
}

bool Client::prepare(const std::shared_ptr<Task>& task, Work* work, Fault* why) {
  const auto device = static_cast<OwnDevice>(task->device);
  if (!task->kernel.empty()) {
    Run* const run = task->run.get();
    if (run != nullptr) work->kernel = run->kernel.load(std::memory_order_acquire);
    if (work->kernel == nullptr) {
      work->kernel = programs_.find(device, task->kernel, task->arguments.size(), why);
      if (work->kernel == nullptr) return false;
      if (run != nullptr) run->kernel.store(work->kernel, std::memory_order_release);
    }
  }
  bool is_placed = false;
  {
    Locked lock(*this);
    if (!claim(task)) return false;
    set_status(*task, TaskState::kRunning, MCL_REQ_EXECUTING);
    is_placed = place_where_they_are(*task);
  }
  if (!is_placed) *why = place_arguments(*task);
  if (*why) return false;
  work->device = places_[device].local;
  work->wants_times = wants_times_.load(std::memory_order_relaxed);
  while (work->dimensions < 3 &&
         std::any_of(task->global + work->dimensions, task->global + 3,
                     [](std::uint64_t size) { return size > 1; })) {
    ++work->dimensions;
  }
  std::copy(std::begin(task->global), std::end(task->global), work->global);
  std::copy(std::begin(task->local), std::end(task->local), work->local);
  std::copy(std::begin(task->offset), std::end(task->offset), work->offset);
  work->arguments = task->kernel_arguments;
  work->to_device = task->to_device;
  work->to_host = task->to_host;
  for (const Copy& copy : task->to_device) task->copied += copy.size;
  for (const Copy& copy : task->to_host) task->copied += copy.size;
  return true;
}

// Takes all buffers whose bytes have to move for this task, or none and waits.
bool Client::claim(const std::shared_ptr<Task>& task) {
  const auto device = static_cast<OwnDevice>(task->device);
  for (const Argument& argument : task->arguments) {
    if (argument.resident == nullptr || !argument.resident->moving) continue;
    argument.resident->parked.push_back(task);
    return false;
  }
  for (const Argument& argument : task->arguments) {
    ResidentBuffer* buffer = argument.resident.get();
    if (buffer == nullptr || buffer->moving) continue;
    const bool valid = !argument.kernel_reads() ||
                       buffer->where.is_valid(device, argument.range());
    if (valid && buffer->copies.contains(device) && !task->kernel.empty()) continue;
    buffer->moving = true;
    task->moved.push_back(argument.resident);
  }
  return true;
}

std::shared_ptr<DeviceBuffer> Client::valid_copy(const Task& task, const Argument& argument) {
  const auto device = static_cast<OwnDevice>(task.device);
  const ResidentBuffer& buffer = *argument.resident;
  const auto found = buffer.copies.find(device);
  if (found == buffer.copies.end()) return nullptr;
  if (!argument.kernel_reads() || buffer.where.is_valid(device, argument.range())) {
    return found->second;
  }
  return nullptr;
}

bool Client::place_where_they_are(Task& task) {
  if (task.kernel.empty()) return false;
  for (const Argument& argument : task.arguments) {
    if (!argument.is_buffer()) continue;
    if (argument.resident == nullptr || valid_copy(task, argument) == nullptr) return false;
  }
  for (Argument& argument : task.arguments) {
    if (argument.is_buffer()) {
      use_copy(task, argument, valid_copy(task, argument), {});
    } else {
      place_value(task, argument);
    }
  }
  return true;
}

void Client::place_value(Task& task, const Argument& argument) {
  KernelArgument value;
  value.kind = (argument.flags & MCL_ARG_LOCAL) != 0 ? KernelArgument::Kind::kLocal
                                                     : KernelArgument::Kind::kValue;
  value.value = argument.value.data();
  value.size = argument.size;
  task.kernel_arguments.push_back(value);
}

Fault Client::place_arguments(Task& task) {
  for (Argument& argument : task.arguments) {
    if (task.kernel.empty()) {
      if (Fault wrong = move_only(task, argument)) return wrong;
      continue;
    }
    if (argument.is_buffer()) {
      Fault wrong = argument.resident != nullptr ? place_resident(task, argument)
                                                 : place_temporary(task, argument);
      if (wrong) return wrong;
      continue;
    }
    place_value(task, argument);
  }
  return no_fault();
}

Fault Client::place_temporary(Task& task, Argument& argument) {
  const DevicePlace& place = places_[static_cast<std::size_t>(task.device)];
  Outcome outcome;
  std::shared_ptr<DeviceBuffer> buffer =
      place.backend->allocate(place.local, argument.size, argument.address, &outcome);
  if (buffer == nullptr) return fault_of(outcome);
  KernelArgument value;
  value.kind = KernelArgument::Kind::kBuffer;
  value.buffer = buffer.get();
  value.size = argument.size;
  task.kernel_arguments.push_back(value);
  const Copy copy{buffer.get(), 0, argument.address, argument.size};
  if ((argument.flags & MCL_ARG_INPUT) != 0) task.to_device.push_back(copy);
  if ((argument.flags & MCL_ARG_OUTPUT) != 0) task.to_host.push_back(copy);
  task.held.push_back(std::move(buffer));
  return no_fault();
}

Fault Client::place_resident(Task& task, Argument& argument) {
  ResidentBuffer& buffer = *argument.resident;
  const auto device = static_cast<OwnDevice>(task.device);
  const DevicePlace& place = places_[device];
  const Range range = argument.range();
  std::shared_ptr<DeviceBuffer> copy;
  {
    Locked lock(*this);
    if (auto valid = valid_copy(task, argument)) {
      use_copy(task, argument, std::move(valid), {});
      return no_fault();
    }
    if (const auto found = buffer.copies.find(device); found != buffer.copies.end()) {
      copy = found->second;
    }
  }
  if (copy == nullptr) {
    Outcome outcome;
    copy = place.backend->allocate(place.local, buffer.where.size(), buffer.address, &outcome);
    if (copy == nullptr) return fault_of(outcome);
  }
  std::vector<Move> moves;
  {
    Locked lock(*this);
    buffer.copies.emplace(device, copy);
    // A part that is only written is valid afterwards all the same.
    if (argument.kernel_reads()) moves = buffer.where.bring(device, range);
  }
  std::vector<Move> to_host;
  std::copy_if(moves.begin(), moves.end(), std::back_inserter(to_host),
               [](const Move& move) { return move.to == kHost; });
  if (Fault wrong = save(buffer, to_host)) return wrong;
  Locked lock(*this);
  use_copy(task, argument, std::move(copy), moves);
  return no_fault();
}

void Client::use_copy(Task& task, Argument& argument, std::shared_ptr<DeviceBuffer> copy,
                      const std::vector<Move>& moves) {
  ResidentBuffer& buffer = *argument.resident;
  const auto device = static_cast<OwnDevice>(task.device);
  const Range range = argument.range();
  for (const Move& move : moves) {
    if (move.to == kHost) continue;
    task.to_device.push_back(
        {copy.get(), move.range.begin, buffer.address + move.range.begin, move.range.size()});
  }
  if (argument.kernel_writes()) {
    buffer.where.written(device, range);
    for (const OwnDevice other : buffer.where.copies()) {
      const bool useless = other != device && buffer.where.is_stale(other);
      if (useless && buffer.running[other] == 0) drop_copy(buffer, other, true);
    }
  }
  if ((argument.flags & MCL_ARG_OUTPUT) != 0) {
    buffer.where.bring(kHost, range);
    task.to_host.push_back({copy.get(), range.begin, buffer.address + range.begin, range.size()});
  }
  KernelArgument value;
  value.kind = KernelArgument::Kind::kBuffer;
  value.buffer = copy.get();
  value.offset = argument.offset;
  value.size = argument.size;
  task.kernel_arguments.push_back(value);
  task.held.push_back(std::move(copy));
}

// A transfer: bytes to the device, or back to the host.
Fault Client::move_only(Task& task, Argument& argument) {
  if (argument.resident == nullptr) return no_fault();
  Argument as_input = argument;
  const bool back = (argument.flags & MCL_ARG_OUTPUT) != 0;
  const bool done = (argument.flags & MCL_ARG_DONE) != 0;
  if (back || done) {
    std::vector<Move> moves;
    {
      Locked lock(*this);
      if (back) moves = argument.resident->where.bring(kHost, argument.range());
    }
    if (Fault wrong = save(*argument.resident, moves)) return wrong;
    for (const Move& move : moves) task.copied += move.range.size();
  }
  if (back || done) return no_fault();
  as_input.flags = MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_INPUT | MCL_ARG_RDONLY;
  return place_resident(task, as_input);
}

Fault Client::copy_now(OwnDevice device, const std::vector<Copy>& to_host) {
  const DevicePlace& place = places_[device];
  Work work;
  work.device = place.local;
  work.to_host = to_host;
  Waiter waiter;
  forget_begun();
  place.backend->submit(work, waiter);
  const Outcome outcome = waiter.wait();
  if (outcome.failure == Failure::kNone) return no_fault();
  return fault(MCL_ERR_MEMCOPY, "a copy from device '{}' failed: {}", place.description->name,
               outcome.message);
}

Fault Client::save(ResidentBuffer& buffer, const std::vector<Move>& moves) {
  std::map<OwnDevice, std::vector<Copy>> by_device;
  std::vector<std::shared_ptr<DeviceBuffer>> held;
  {
    Locked lock(*this);
    for (const Move& move : moves) {
      AMASIA_CHECK(move.to == kHost, "only what goes to the host is saved");
      const auto copy = buffer.copies.find(move.from);
      AMASIA_CHECK(copy != buffer.copies.end(), "bytes are valid where there is no copy");
      held.push_back(copy->second);
      by_device[move.from].push_back({copy->second.get(), move.range.begin,
                                      buffer.address + move.range.begin, move.range.size()});
    }
  }
  for (const auto& [device, copies] : by_device) {
    if (Fault wrong = copy_now(device, copies)) return wrong;
  }
  return no_fault();
}

void Client::evict(const std::shared_ptr<ResidentBuffer>& buffer, OwnDevice device) {
  std::vector<Move> moves;
  {
    Locked lock(*this);
    // In use again: its last task sees to it.
    if (buffer->moving || buffer->running[device] != 0) return;
    if (!buffer->copies.contains(device)) return;
    buffer->moving = true;
    moves = buffer->where.drop(device);
  }
  const Fault wrong = save(*buffer, moves);
  if (wrong) base::log_line(base::LogLevel::kError, "data is lost: {}", wrong.reason);
  {
    Locked lock(*this);
    drop_copy(*buffer, device, true);
    unpark(*buffer);
    flush();
  }
  empty_graveyard();
}

void Client::drop_copy(ResidentBuffer& buffer, OwnDevice device, bool tell) {
  buffer.where.forget(device);
  buffer.to_evict &= ~(DeviceSet{1} << device);
  const auto found = buffer.copies.find(device);
  if (found == buffer.copies.end()) return;
  bury(std::move(found->second));
  buffer.copies.erase(found);
  if (tell && !has_other_copy(buffer, device)) {
    post(short_record(RecordKind::kDropped, buffer.number, device));
  }
}

bool Client::has_other_copy(const ResidentBuffer& buffer, OwnDevice device) {
  const DeviceSet others = same_[device] & ~(DeviceSet{1} << device);
  for (DeviceSet left = others; left != 0; left &= left - 1) {
    const auto other = static_cast<OwnDevice>(std::countr_zero(left));
    const auto running = buffer.running.find(other);
    const bool runs = running != buffer.running.end() && running->second != 0;
    if (runs || buffer.copies.contains(other)) return true;
  }
  return false;
}

void Client::unpark(ResidentBuffer& buffer) {
  buffer.moving = false;
  for (std::shared_ptr<Task>& task : buffer.parked) {
    const auto device = static_cast<OwnDevice>(task->device);
    enqueue({std::move(task), nullptr, device}, false);
  }
  buffer.parked.clear();
}

void Client::bury(std::shared_ptr<DeviceBuffer> buffer) {
  graveyard_.push_back(std::move(buffer));
  has_dead_.store(true, std::memory_order_relaxed);
}

// Frees device memory where that may block, which the end of a work may not.
void Client::empty_graveyard() {
  if (!has_dead_.load(std::memory_order_relaxed)) return;  // what comes just now is seen later
  std::vector<std::shared_ptr<DeviceBuffer>> dead;  // freed after the lock
  Locked lock(*this);
  dead.swap(graveyard_);
  has_dead_.store(false, std::memory_order_relaxed);
}

}  // namespace amasia::devices
