// SPDX-License-Identifier: Apache-2.0
// Brief tasks that run without asking the daemon, on a device that it has leased to this program as
// nobody else wants anything (docs/protocols/devices.md): the way there and back costs more than
// they do.
//
// One at a time, and only while the daemon has nothing else of ours: who has many tasks to run has
// them placed by the daemon, and put as runs. And only what takes no memory that the daemon does
// not know of.
#include <algorithm>
#include <bit>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// Beside a kernel that takes longer the way is nothing, and the daemon shows what runs just now.
// Much more than a brief one takes: on a GPU that was idle the time that its driver tells has its
// waking up in it.
constexpr Nanos kLongestLeased = 256 * base::kMicrosecond;
// Bytes that such a task may take back to the host.
constexpr Bytes kMostBack = 64 * base::kKiB;
// The daemon sleeps while they run. Its ring has room for so many that it has not read.
constexpr std::uint32_t kHeardEvery = kRingSlots / 4;

// What this thread has begun last, and may be about to wait for.
struct Begun {
  const Client* client = nullptr;
  std::uint64_t number = 0;
};
thread_local Begun begun;

}  // namespace

bool Client::may_begin(Task& task) {
  if (leased_ == 0 || outstanding_ != 0 || gathered_tasks_ != 0 || draining_) return false;
  if (task.kernel.empty() || task.identity == 0) return false;
  // Where it may run elsewhere, too, that is for the daemon to choose.
  const DeviceSet shown = devices_of(task.allowed);
  if (std::popcount(shown) != 1 || (shown & leased_) == 0) return false;
  const auto device = static_cast<OwnDevice>(std::countr_zero(task.allowed));
  const DevicePlace& place = places_[device];
  if (place.backend->runs_in_caller(place.local)) return false;
  const auto known = brief_times_.find(task.identity);
  if (known == brief_times_.end()) return false;
  const Nanos expected = known->second.expected(task.items());
  if (expected <= 0 || expected > kLongestLeased) return false;
  Bytes back = 0;
  for (const Argument& argument : task.arguments) {
    if (!argument.is_buffer()) continue;
    if (argument.resident == nullptr || argument.resident->moving) return false;
    const ResidentBuffer& buffer = *argument.resident;
    const bool is_valid = !argument.kernel_reads() ||
                          buffer.where.is_valid(device, argument.range());
    if (!is_valid || !buffer.copies.contains(device)) return false;
    if ((argument.flags & MCL_ARG_OUTPUT) != 0) back += argument.size;
  }
  if (back > kMostBack || !programs_.is_known(device, task.kernel)) return false;
  if (place.description->device_class != DeviceClass::kCpu) return true;
  task.weighed_at = os::monotonic_now();
  return lease_habits_[task.identity].begins_at_once();
}

// At its end. Of one that had others beside it the way is not what it took.
void Client::weigh(const Task& task) {
  if (task.weighed_at == 0 || outstanding_ != 0 || gathered_tasks_ != 0) return;
  lease_habits_[task.identity].note(task.begun_at != 0, os::monotonic_now() - task.weighed_at);
}

void Client::begin_leased(Task& task) {
  const auto device = static_cast<OwnDevice>(std::countr_zero(task.allowed));
  task.device = device;
  task.link = link_number_;
  task.begun_at = os::monotonic_now();
  for (Argument& argument : task.arguments) {
    if (argument.resident != nullptr) ++argument.resident->running[device];
  }
  tell_name(task.identity, task.kernel);
  ++outstanding_;
  ++granted_;
  ++in_flight_[device].now;
  set_status(task, TaskState::kGranted, MCL_REQ_INPROGRESS);
}

void Client::run_leased(const std::shared_ptr<Task>& task) {
  begun = {this, task->number};
  execute(task, CallerWaits::kPerhaps);
}

void Client::forget_begun() { begun = {}; }

void Client::wait_for_begun(Task& task, Nanos deadline) {
  if (begun.client != this || begun.number != task.number) return;
  begun = {};
  places_[static_cast<std::size_t>(task.device)].backend->wait_for(task, deadline);
}

void Client::tell_ran(const Task& task, const Outcome& outcome, std::uint8_t failure) {
  RanRecord record;
  record.failure = failure;
  record.device = static_cast<std::uint8_t>(task.device);
  record.task = task.number;
  record.kernel = task.identity;
  record.work_items = task.items();
  record.sent = task.begun_at;
  record.run_began = outcome.run_began;
  record.run_ended = outcome.run_ended;
  record.copied = task.copied;
  post(Record::of(record), ++unheard_ran_ % kHeardEvery == 0 ? Urgency::kOwn : Urgency::kNone);
}

}  // namespace amasia::devices
