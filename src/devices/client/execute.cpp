// SPDX-License-Identifier: Apache-2.0
// From a grant to the end of the work on a device.
#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// More jobs that run whole kernels, or that are better submitted by many, than the one thread that
// reads the ring should have before it.
constexpr std::size_t kJobsForOne = 4;
// How many workers at a time submit to a device what is better submitted by many: more of them hold
// each other up in its driver.
constexpr std::uint32_t kHands = 2;
// How many others one thread takes at a time.
constexpr std::size_t kJobsAtOnce = 64;

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

void Client::work(void* argument) {
  Client& client = *static_cast<Client*>(argument);
  os::set_thread_name("amasia-worker");
  if (client.settings_.pin_workers) {
    static std::atomic<unsigned> next{0};
    const auto cores = os::allowed_cores();
    if (!cores.empty()) static_cast<void>(os::pin_to_core(cores[next.fetch_add(1) % cores.size()]));
  }
  client.work_loop();
}

void Client::work_loop() {
  while (!stopping_.load()) {
    const std::uint32_t seen = job_posts_.load(std::memory_order_seq_cst);
    Job job;
    bool found = false, hand = false;
    {
      Locked lock(*this);
      found = take_job(&job, &hand);
    }
    if (found) {
      const OwnDevice device = job.device;
      run(job);
      if (!hand) continue;
      Locked lock(*this);
      --hands_[device].busy;
      continue;
    }
    if (stopping_.load()) return;
    idle_workers_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wait(job_posts_, seen, -1);
    idle_workers_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

// Invariant: where somebody counts as called, a worker will look for jobs after that; one that
// finds none says so here, under the lock.
bool Client::take_job(Job* job, bool* hand) {
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    Hands& hands = hands_[at->device];
    // To load a kernel takes long, and holds up nobody.
    *hand = is_for_many(*at) && programs_.is_known(at->device, at->task->kernel);
    if (*hand && hands.busy >= kHands) continue;  // these look for more when they are done
    if (*hand) {
      ++hands.busy;
      if (hands.called != 0) --hands.called;
    }
    *job = std::move(*at);
    jobs_.erase(at);
    return true;
  }
  for (Hands& hands : hands_) hands.called = 0;
  return false;
}

void Client::enqueue(Job job, bool stays) {
  const DevicePlace& place = places_[job.device];
  Hands& hands = hands_[job.device];
  const bool quick = stays && is_quick(job);
  const bool is_many = is_for_many(job);
  const bool takes_long = place.backend->runs_in_caller(place.local) || is_many;
  jobs_.push_back(std::move(job));
  if (quick && (!takes_long || jobs_.size() <= kJobsForOne)) return;
  if (is_many && quick) {
    if (hands.busy + hands.called >= kHands) return;
    ++hands.called;
  }
  call_worker();
}

bool Client::is_for_many(const Job& job) {
  if (job.evict != nullptr) return false;
  const DevicePlace& place = places_[job.device];
  const auto& arguments = job.task->arguments;
  return place.backend->takes_copies_from_many(place.local) &&
         std::any_of(arguments.begin(), arguments.end(), [](const Argument& one) {
           return one.is_buffer() && one.resident == nullptr;
         });
}

void Client::call_worker() {
  job_posts_.fetch_add(1, std::memory_order_seq_cst);
  if (idle_workers_.load(std::memory_order_seq_cst) != 0) os::futex_wake(job_posts_, 1);
}

bool Client::is_quick(const Job& job) {
  if (job.evict != nullptr) return false;
  const Task& task = *job.task;
  // Who runs a whole kernel reads no ring meanwhile; the next grants are for somebody else then.
  if (in_flight_[job.device].runs_long && idle_workers_.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  const bool found = task.run != nullptr && task.run->is_loaded;
  if (!found && !task.kernel.empty() && !programs_.is_known(job.device, task.kernel)) return false;
  if (task.run != nullptr) task.run->is_loaded = true;
  return std::all_of(task.arguments.begin(), task.arguments.end(), [&](const Argument& argument) {
    if (argument.resident == nullptr) return true;
    // What has to come from another device, or back, is waited for.
    const Residency& where = argument.resident->where;
    return !task.kernel.empty() && (where.is_valid(job.device, argument.range()) ||
                                    where.is_valid(kHost, argument.range()));
  });
}

bool Client::run_quick_jobs(const Task* mine, Nanos deadline) {
  std::array<Job, kJobsAtOnce> taken;
  std::size_t count = 0;
  {
    Locked lock(*this);
    std::size_t passed_over = 0;
    for (auto at = jobs_.begin(); at != jobs_.end() && count < taken.size();) {
      if (!is_quick(*at)) {
        if (++passed_over == 2 * kJobsForOne) break;
        ++at;
        continue;
      }
      const DevicePlace& place = places_[at->device];
      const bool takes_long = place.backend->runs_in_caller(place.local);
      if (takes_long && count != 0) break;
      const bool leaves_others = is_for_many(*at);
      taken[count++] = std::move(*at);
      at = jobs_.erase(at);
      if (takes_long || (leaves_others && count == kJobsForOne)) break;
    }
    // One that was quick when it was queued, so that no worker was called for it, may not be now.
    if (passed_over != 0) call_worker();
  }
  if (count == 0) return false;
  // What the caller waits for comes last: with that it may stay.
  const auto jobs = std::span(taken).first(count);
  const auto own = std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) {
    return mine != nullptr && job.task.get() == mine;
  });
  if (own != jobs.end()) std::iter_swap(own, std::prev(jobs.end()));
  submit_all(jobs, mine, deadline);
  return true;
}

void Client::submit_all(std::span<const Job> jobs, const Task* mine, Nanos deadline) {
  std::array<Submission, kJobsAtOnce> works;
  std::array<Backend*, kJobsAtOnce> backends;
  std::size_t count = 0;
  forget_begun();
  for (const Job& job : jobs) {
    Submission& one = works[count];
    one = {};
    if (!begin(job.task, &one.work)) continue;
    if (job.task.get() == mine) one.work.caller_waits = CallerWaits::kAtOnce;
    one.completion = job.task.get();
    backends[count++] = places_[job.device].backend;
  }
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i + 1;
    while (end < count && backends[end] == backends[i]) ++end;
    backends[i]->submit_all(std::span(works).subspan(i, end - i));
    i = end;
  }
  if (count == 0 || works[count - 1].work.caller_waits != CallerWaits::kAtOnce) return;
  if (mine->ended.load(std::memory_order_acquire) != 0) return;
  backends[count - 1]->wait_for(*works[count - 1].completion, deadline);
}

void Client::run(Job& job) {
  if (job.task != nullptr) {
    execute(job.task);
  } else {
    evict(job.evict, job.device);
  }
}

void Client::execute(const std::shared_ptr<Task>& task, CallerWaits caller_waits) {
  Work work;
  if (!begin(task, &work)) return;
  work.caller_waits = caller_waits;
  places_[static_cast<std::size_t>(task->device)].backend->submit(work, *task);
}

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
